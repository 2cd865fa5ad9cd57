/** The public API, as far as the page uses it. Everything the page does, any other client can do. */
import type { Feature, FeatureCollection, Point } from 'geojson';
import type { Region } from './regions.ts';

export interface Identity {
  subscriber: string;
  key: string;
}

export interface Wish {
  id: string;
  subscriber: string;
  kind: 'match' | 'rank' | 'follow';
  [field: string]: unknown;
}

export interface DryRun {
  matched: number;
  scanned: number;
  examples: { data: MessageFeature }[];
}

export interface Told {
  operation: 'match' | 'enter' | 'leave' | 'current';
  seq: number;
  subscriptions: string[];
  scores?: number[];
}

export type MessageFeature = Feature<Point, { text: string | null; terms?: string[] }> & {
  id?: string | number;
  nearcast?: Partial<Told> & { score?: number };
};

export type Change = (MessageFeature | (FeatureCollection & { features: MessageFeature[] })) & {
  nearcast: Told;
};

export interface LogRecord {
  seq: number;
  accepted: number;
  id: string | number;
  text?: string;
  terms?: string[];
  lon?: number;
  lat?: number;
  west?: number;
  south?: number;
  east?: number;
  north?: number;
}

export interface LogPiece {
  records: LogRecord[];
  position: number;
  last: number;
}

export class Refused extends Error {
  readonly status: number;
  constructor(status: number, reason: string) {
    super(reason);
    this.status = status;
  }
}

export class Api {
  identity: Identity;
  private readonly root: string;

  constructor(identity: Identity, root = '/v1') {
    this.identity = identity;
    this.root = root;
  }

  async wishes(): Promise<Wish[]> {
    const query = new URLSearchParams({ subscriber: this.identity.subscriber });
    const told = (await (await this.ask(`/subscriptions?${query}`)).json()) as { subscriptions: Wish[] };
    return told.subscriptions;
  }

  async save(wish: Record<string, unknown>, id?: string): Promise<Wish> {
    const [method, path] = id === undefined ? ['POST', ''] : ['PUT', `/${encodeURIComponent(id)}`];
    const body = { subscriber: this.identity.subscriber, ...wish };
    return (await this.ask(`/subscriptions${path}`, { method, body })).json() as Promise<Wish>;
  }

  async remove(id: string): Promise<void> {
    await this.ask(`/subscriptions/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  async move(id: string, region: Region): Promise<{ entered: number; left: number }> {
    const answer = await this.ask('/moves', { method: 'POST', body: { moves: [{ id, ...region }] } });
    return answer.json() as Promise<{ entered: number; left: number }>;
  }

  async current(id: string): Promise<MessageFeature[]> {
    const told = await (await this.ask(`/current?${new URLSearchParams({ id })}`)).json();
    return (told as { features: MessageFeature[] }).features;
  }

  async dryRun(expression: string, region: Region, after: number, signal: AbortSignal): Promise<DryRun> {
    const body = { wish: { expression, ...region }, after, examples: 50 };
    return (await this.ask('/dry-run', { method: 'POST', body, signal })).json() as Promise<DryRun>;
  }

  async log(after: number, limit: number): Promise<LogPiece> {
    const answer = await this.ask(
      `/messages?${new URLSearchParams({ after: `${after}`, limit: `${limit}` })}`,
    );
    const lines = (await answer.text()).split('\n').filter((line) => line !== '');
    return {
      records: lines.map((line) => JSON.parse(line) as LogRecord),
      position: Number(answer.headers.get('Nearcast-Position')),
      last: Number(answer.headers.get('Nearcast-Last')),
    };
  }

  async metrics(): Promise<string> {
    return (await fetch('/metrics')).text();
  }

  /** The live stream's body; the server sends what was missed behind `after` first. */
  async events(after: number | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const query = new URLSearchParams({ subscriber: this.identity.subscriber });
    if (after !== null) query.set('after', `${after}`);
    const answer = await this.ask(`/events?${query}`, { signal });
    if (answer.body === null) throw new Refused(answer.status, 'the stream has no body');
    return answer.body;
  }

  private async ask(
    path: string,
    options: { method?: string; body?: unknown; signal?: AbortSignal } = {},
  ): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.identity.key !== '') headers.authorization = `Bearer ${this.identity.key}`;
    if (options.body !== undefined) headers['content-type'] = 'application/json';
    const answer = await fetch(this.root + path, {
      method: options.method ?? 'GET',
      headers,
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    if (answer.ok) return answer;
    const told = (await answer.json().catch(() => ({}))) as { error?: string };
    throw new Refused(answer.status, told.error ?? `status ${answer.status}`);
  }
}
