/** My events, for ever: opened again behind the last position when the connection breaks. */
import type { Api, Change } from './api.ts';
import { frames } from './sse.ts';

const COME_BACK = 1000; // milliseconds

export class Stream {
  private stopping = new AbortController();
  private readonly api: Api;
  private readonly changed: (change: Change) => void;
  private readonly told: (state: string, bad: boolean) => void;

  constructor(api: Api, changed: (change: Change) => void, told: (state: string, bad: boolean) => void) {
    [this.api, this.changed, this.told] = [api, changed, told];
  }

  /** From `after` on: rankings tell what they hold first. */
  start(after: number): void {
    this.stopping.abort();
    this.stopping = new AbortController();
    void this.run(after, this.stopping.signal);
  }

  private async run(after: number, signal: AbortSignal): Promise<void> {
    let position = after;
    while (!signal.aborted) {
      try {
        const body = await this.api.events(position, signal);
        this.told('connected', false);
        for await (const { event, id, data } of frames(body)) {
          if (event !== 'gap') this.changed((JSON.parse(data) as { data: Change }).data);
          if (id !== null) position = Number(id);
        }
        this.told('the server ended the stream; coming back …', false);
      } catch (error) {
        if (signal.aborted) return;
        this.told(`no connection (${(error as Error).message}); trying again …`, true);
      }
      await new Promise((resolve) => setTimeout(resolve, COME_BACK));
    }
  }
}
