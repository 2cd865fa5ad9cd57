/** A subscriber that moves: a mark to drag, or to push with the arrow keys; its region goes with it. */
import { Marker } from 'maplibre-gl';
import type { Api, Change, Wish } from './api.ts';
import { element, field, make, say } from './dom.ts';
import type { WorldMap } from './map.ts';
import type { Circle } from './regions.ts';

const PAUSE = 120; // milliseconds between two moves that are sent
const PUSH = 20; // pixels for each press of an arrow key
const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export class Mover {
  private marker: Marker | null = null;
  private wish: Wish | null = null;
  private due = 0;
  private moves = 0;
  private readonly form = element<HTMLFormElement>('follow');
  private readonly told = element<HTMLOutputElement>('moving');

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
    this.wish = held.find((wish) => wish.id === this.id) ?? null;
    if (this.wish !== null) this.place(this.wish as unknown as Circle);
  }

  forget(id: string): void {
    if (id !== this.id) return;
    this.marker?.remove();
    this.marker = null;
  }

  take(_: Change): void {}

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
      this.moves += 1;
      void this.save(String(this.wish.expression), { lon: lng, lat, radius_m: Number(this.wish.radius_m) });
    }, PAUSE);
  }

  private async save(expression: string, circle: Circle): Promise<void> {
    try {
      this.wish = await this.api.save({ kind: 'match', expression, ...circle }, this.id);
      say(this.told, `Moved ${this.moves} times; ${(circle.radius_m / 1000).toFixed(0)} km around the mark.`);
      this.moved();
    } catch (error) {
      say(this.told, (error as Error).message, true);
    }
  }
}
