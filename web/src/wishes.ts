/** The wishes that I hold, in a list and on the map. */
import type { Api, Wish } from './api.ts';
import { element, make, removeButton } from './dom.ts';
import type { WorldMap } from './map.ts';
import { shapeOf } from './regions.ts';

export class Wishes {
  private readonly list = element<HTMLUListElement>('wishes');

  constructor(
    private readonly api: Api,
    private readonly world: WorldMap,
    private readonly removed: (wish: Wish) => void,
  ) {}

  async load(): Promise<Wish[]> {
    const held = await this.api.wishes();
    this.world.show(
      'wishes',
      held.map((wish) => shapeOf(wish)).filter((shape) => shape !== null),
    );
    this.list.replaceChildren(...held.map((wish) => this.row(wish)));
    if (held.length === 0) this.list.append(make('li', '', make('span', 'aside', 'None yet')));
    return held;
  }

  private row(wish: Wish): HTMLElement {
    const text = String(
      wish.expression ?? wish.text ?? (wish.terms as string[] | undefined)?.join(' ') ?? '',
    );
    const remove = removeButton(text, () => void this.remove(wish));
    return make('li', '', make('span', 'aside', wish.kind), make('span', 'text', text), remove);
  }

  private async remove(wish: Wish): Promise<void> {
    await this.api.remove(wish.id);
    this.removed(wish);
    await this.load();
  }
}
