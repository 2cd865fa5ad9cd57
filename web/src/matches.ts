/** What my wishes matched: the newest on top, and on the map for a while. */
import type { MessageFeature } from './api.ts';
import { element, make } from './dom.ts';
import { glow, spot } from './feed.ts';
import type { WorldMap } from './map.ts';

const SHOWN = 50;
const FADE = 60_000; // milliseconds

export function textOf(feature: MessageFeature): string {
  return feature.properties.text ?? feature.properties.terms?.join(' ') ?? '';
}

export function pointOf(feature: MessageFeature): [number, number] {
  if (feature.geometry.type === 'Point') return feature.geometry.coordinates as [number, number];
  const ring = (feature.geometry as unknown as { coordinates: number[][][] }).coordinates[0] ?? [[0, 0]];
  return ring[0] as [number, number];
}

export class Matches {
  private readonly list = element<HTMLOListElement>('matches');
  private readonly count = element<HTMLSpanElement>('match-count');
  private found: { at: number; lon: number; lat: number }[] = [];
  private total = 0;

  constructor(private readonly world: WorldMap) {
    setInterval(() => this.draw(), 3000);
  }

  add(feature: MessageFeature): void {
    const [lon, lat] = pointOf(feature);
    this.found.push({ at: Date.now(), lon, lat });
    this.total += 1;
    this.count.textContent = this.total.toLocaleString('en');
    this.list.prepend(make('li', 'new', make('span', 'text', textOf(feature))));
    while (this.list.children.length > SHOWN) this.list.lastElementChild?.remove();
    this.draw();
  }

  private draw(): void {
    const now = Date.now();
    this.found = this.found.filter(({ at }) => glow(at, now, FADE) > 0).slice(-500);
    this.world.show(
      'matches',
      this.found.map(({ at, lon, lat }) => spot(lon, lat, { glow: glow(at, now, FADE) })),
    );
  }
}
