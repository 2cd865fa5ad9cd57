/** The line of figures at the top, once a second. */
import type { Api } from './api.ts';
import { make } from './dom.ts';
import type { Feed } from './feed.ts';
import { type Reading, rate, read } from './metrics.ts';

const EVERY = 1000; // milliseconds
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export type Figure = [name: string, value: string, bad: boolean];

export function figures(before: Reading | null, now: Reading, feed: Feed['state']): Figure[] {
  const value = (name: string) => now.values.get(name) ?? 0;
  const rejected = value('rows_rejected_total');
  const lag = feed.behind + value('messages_waiting');
  return [
    ['wishes', number.format(value('subscriptions')), false],
    ['messages/s', number.format(rate('messages_accepted_total', before, now)), false],
    ['matches/s', number.format(rate('deliveries_matched_total', before, now)), false],
    ['lag', `${number.format(lag)} messages`, lag > 10_000],
    ['rejected', number.format(rejected), rejected > 0],
    ['readers', number.format(value('streams_open')), false],
  ];
}

export async function watchFigures(api: Api, feed: Feed, list: HTMLElement): Promise<never> {
  let before: Reading | null = null;
  for (;;) {
    try {
      const now = read(await api.metrics(), performance.now());
      const rows = figures(before, now, feed.state);
      list.replaceChildren(
        ...rows.map(([name, text, bad]) =>
          make('div', '', make('dt', '', name), make('dd', bad ? 'bad' : '', text)),
        ),
      );
      before = now;
    } catch {
      before = null; // the stream says that the server is away
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}
