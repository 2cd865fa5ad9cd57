/** All messages, as they are accepted: the end of the log, read again and again. */
import type { Feature } from 'geojson';
import type { Api, LogRecord } from './api.ts';

const EVERY = 800; // milliseconds
const MOST = 1000; // messages in one reading; the map shows the newest if there are more
const SHOWN = 1500;
const FADE = 12_000; // milliseconds

export interface FeedState {
  last: number; // number of the last message in the log
  behind: number; // messages that are there and not shown yet
  age: number | null; // seconds since the newest was accepted
}

interface Seen {
  at: number;
  lon: number;
  lat: number;
}

export function placeOf(record: LogRecord): { lon: number; lat: number } {
  if (record.lon !== undefined && record.lat !== undefined) return { lon: record.lon, lat: record.lat };
  const { west = 0, south = 0, east = 0, north = 0 } = record;
  return { lon: (west + east) / 2, lat: (south + north) / 2 };
}

/** 1 when it came, 0 when it is forgotten. */
export function glow(at: number, now: number, fade = FADE): number {
  return Math.max(0, 1 - (now - at) / fade);
}

export class Feed {
  private position: number | null = null;
  private seen: Seen[] = [];
  state: FeedState = { last: 0, behind: 0, age: null };

  constructor(
    private readonly api: Api,
    private readonly show: (features: Feature[]) => void,
  ) {}

  async start(): Promise<void> {
    for (;;) {
      await this.step().catch(() => {}); // the stream says that the server is away
      await new Promise((resolve) => setTimeout(resolve, EVERY));
    }
  }

  private async step(): Promise<void> {
    if (this.position === null) this.position = (await this.api.log(0, 0)).last;
    const piece = await this.api.log(this.position, MOST);
    this.position = piece.last - piece.position > MOST ? piece.last - MOST : piece.position;
    const newest = piece.records.at(-1);
    const now = Date.now();
    this.state = {
      last: piece.last,
      behind: piece.last - this.position,
      age: newest ? Math.max(0, now / 1000 - newest.accepted) : this.state.age,
    };
    this.seen.push(...piece.records.map((record) => ({ at: now, ...placeOf(record) })));
    this.seen = this.seen.filter(({ at }) => glow(at, now) > 0).slice(-SHOWN);
    this.show(this.seen.map(({ at, lon, lat }) => spot(lon, lat, { glow: glow(at, now) })));
  }
}

export function spot(lon: number, lat: number, properties: Record<string, unknown>): Feature {
  return { type: 'Feature', properties, geometry: { type: 'Point', coordinates: [lon, lat] } };
}
