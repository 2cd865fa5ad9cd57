/** A subscriber that moves: a mark to drag, or to push with the arrow keys; its region goes with it. */
import { Marker } from 'maplibre-gl';
import type { Api, Change, MessageFeature, Wish } from './api.ts';
import { element, field, make, say } from './dom.ts';
import { spot } from './feed.ts';
import type { WorldMap } from './map.ts';
import { pointOf, textOf } from './matches.ts';
import type { Circle } from './regions.ts';

const PAUSE = 120; // milliseconds between two moves that are sent
const PUSH = 20; // pixels for each press of an arrow key
const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

const SHOWN = 8;

function byId(features: MessageFeature[]): Map<string | number, MessageFeature> {
  return new Map(features.map((feature) => [feature.id ?? '', feature]));
}

export class Mover {
  private marker: Marker | null = null;
  private wish: Wish | null = null;
  private due = 0;
  private moves = 0;
  private held = new Map<string | number, MessageFeature>(); // by id
  private readonly form = element<HTMLFormElement>('follow');
  private readonly told = element<HTMLOutputElement>('moving');
  private readonly list = element<HTMLUListElement>('around');

  constructor(
    private readonly api: Api,
    private readonly world: WorldMap,
    private readonly moved: () => void,
  ) {
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      const words = field(this.form, 'words').value;
      const radius_m = 1000 * Number(field(this.form, 'km').value);
      void this.save(words, { ...this.world.centre(), radius_m });
    });
  }

  private get id(): string {
    return `${this.api.identity.subscriber}/moving`;
  }

  async watch(held: Wish[]): Promise<void> {
    this.wish = held.find((wish) => wish.id === this.id && wish.kind === 'follow') ?? null;
    if (this.wish === null) return;
    this.place(this.wish as unknown as Circle);
    this.hold(await this.api.current(this.id));
  }

  forget(id: string): void {
    if (id !== this.id) return;
    this.marker?.remove();
    this.marker = null;
    this.hold([]);
  }

  /** What comes into the region and goes out of it, by messages and by moves. */
  take(change: Change): void {
    if (!change.nearcast.subscriptions.includes(this.id)) return;
    if (change.type === 'FeatureCollection') this.held = byId(change.features);
    else if (change.nearcast.operation === 'enter') this.held.set(change.id ?? '', change);
    else this.held.delete(change.id ?? '');
    this.draw();
  }

  private hold(features: MessageFeature[]): void {
    this.held = byId(features);
    this.draw();
  }

  private draw(): void {
    const newest = [...this.held.values()].slice(-SHOWN).reverse();
    this.list.replaceChildren(
      ...newest.map((feature) => make('li', '', make('span', 'text', textOf(feature)))),
    );
    this.world.show(
      'around',
      [...this.held.values()].map((feature) => spot(...pointOf(feature), {})),
    );
    const held = `${this.held.size.toLocaleString('en')} recent messages around the mark`;
    if (this.wish !== null) say(this.told, `${held}; moved ${this.moves} times.`);
  }

  private place({ lon, lat }: Circle): void {
    if (this.marker !== null) return;
    const mark = make('div', 'mover');
    mark.tabIndex = 0;
    mark.setAttribute('role', 'button');
    mark.setAttribute('aria-label', 'Moving subscriber: drag, or use the arrow keys');
    mark.addEventListener('keydown', (event) => this.push(event));
    this.marker = new Marker({ element: mark, draggable: true }).setLngLat([lon, lat]).addTo(this.world.map);
    this.marker.on('drag', () => this.moveSoon());
    this.marker.on('dragend', () => this.moveSoon());
  }

  private push(event: KeyboardEvent): void {
    const step = ARROWS[event.key];
    if (step === undefined || this.marker === null) return;
    event.preventDefault();
    event.stopPropagation(); // the map would move as well
    const at = this.world.map.project(this.marker.getLngLat());
    this.marker.setLngLat(this.world.map.unproject([at.x + PUSH * step[0], at.y + PUSH * step[1]]));
    this.moveSoon();
  }

  private moveSoon(): void {
    if (this.due !== 0) return;
    this.due = window.setTimeout(() => {
      this.due = 0;
      if (this.wish === null || this.marker === null) return;
      const { lng, lat } = this.marker.getLngLat().wrap();
      void this.move({ lon: lng, lat, radius_m: Number(this.wish.radius_m) });
    }, PAUSE);
  }

  private async move(circle: Circle): Promise<void> {
    try {
      await this.api.move(this.id, circle);
      this.moves += 1;
      this.draw();
      this.moved();
    } catch (error) {
      say(this.told, (error as Error).message, true);
    }
  }

  private async save(expression: string, circle: Circle): Promise<void> {
    try {
      this.wish = await this.api.save({ kind: 'follow', expression, ...circle }, this.id);
      this.marker?.setLngLat([circle.lon, circle.lat]);
      this.moved();
    } catch (error) {
      say(this.told, (error as Error).message, true);
    }
  }
}
