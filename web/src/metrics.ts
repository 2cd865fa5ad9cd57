/** Figures from the Prometheus text: sums over labels, and rates between two readings. */
export interface Reading {
  at: number; // milliseconds
  values: Map<string, number>;
}

export function read(text: string, at: number): Reading {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const found = /^nearcast_([a-z_]+)(?:\{[^}]*\})? (\S+)$/.exec(line);
    if (found) values.set(found[1] as string, (values.get(found[1] as string) ?? 0) + Number(found[2]));
  }
  return { at, values };
}

/** Per second; 0 before there are two readings. */
export function rate(name: string, before: Reading | null, now: Reading): number {
  if (before === null || now.at <= before.at) return 0;
  const grown = (now.values.get(name) ?? 0) - (before.values.get(name) ?? 0);
  return Math.max(0, (1000 * grown) / (now.at - before.at)); // a server that started again counts from 0
}
