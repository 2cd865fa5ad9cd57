/** A ranking that changes: `current` tells the whole, `enter` and `leave` what happens to it. */
import type { Api, Change, MessageFeature } from './api.ts';
import { element, field, make, say } from './dom.ts';
import { spot } from './feed.ts';
import type { WorldMap } from './map.ts';
import { pointOf, textOf } from './matches.ts';
import { type Entry, entered, left } from './ranked.ts';

export class Best {
  private entries: Entry[] = [];
  private id: string | null = null;
  private readonly list = element<HTMLOListElement>('best');
  private readonly form = element<HTMLFormElement>('ranking');

  constructor(
    private readonly api: Api,
    private readonly world: WorldMap,
    private readonly saved: () => void,
  ) {
    this.form.addEventListener('submit', (event) => void this.save(event));
  }

  /** The ranking to show; null: none. */
  async watch(id: string | null): Promise<void> {
    if (id === this.id) return;
    this.id = id;
    const held = id === null ? [] : await this.api.current(id);
    this.hold(held);
  }

  take(change: Change): void {
    const { operation, subscriptions, scores } = change.nearcast;
    const which = this.id === null ? -1 : subscriptions.indexOf(this.id);
    if (which < 0) return;
    if (change.type === 'FeatureCollection') this.hold(change.features);
    else if (operation === 'enter') this.entries = entered(this.entries, change, scores?.[which] ?? 0);
    else if (operation === 'leave') this.entries = left(this.entries, change);
    this.draw();
  }

  private hold(features: MessageFeature[]): void {
    this.entries = features.map((feature) => ({
      feature,
      score: feature.nearcast?.score ?? 0,
      isNew: false,
    }));
    this.draw();
  }

  private draw(): void {
    this.list.replaceChildren(
      ...this.entries.map(({ feature, score, isNew }) =>
        make(
          'li',
          isNew ? 'new' : '',
          make('span', 'aside', score.toFixed(3)),
          make('span', 'text', textOf(feature)),
        ),
      ),
    );
    this.world.show(
      'best',
      this.entries.map(({ feature }) => spot(...pointOf(feature), {})),
    );
  }

  private async save(event: Event): Promise<void> {
    event.preventDefault();
    const wish = {
      kind: 'rank',
      text: field(this.form, 'words').value,
      k: Number(field(this.form, 'k').value),
    };
    try {
      const { id } = await this.api.save(
        { ...wish, alpha: 0.6, ...this.world.centre() },
        `${this.api.identity.subscriber}/best`,
      );
      this.id = null;
      await this.watch(id);
      this.saved();
    } catch (error) {
      say(element('status'), (error as Error).message, true);
    }
  }
}
