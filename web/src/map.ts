/** The map: land from a file of this server, and layers for messages, matches, wishes and a dry run. */
import type { Feature, FeatureCollection } from 'geojson';
import { type GeoJSONSource, Map as MapLibre, NavigationControl, setWorkerUrl } from 'maplibre-gl';
import 'maplibre-gl/dist/maplibre-gl.css';
import workerUrl from 'maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url';

setWorkerUrl(workerUrl);

export const SOURCES = ['wishes', 'messages', 'around', 'rehearsal', 'matches', 'best'] as const;
export type SourceName = (typeof SOURCES)[number];

function collection(features: Feature[] = []): FeatureCollection {
  return { type: 'FeatureCollection', features };
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Meridians and parallels, so that open water has a scale. */
function graticule(): FeatureCollection {
  const line = (coordinates: number[][]): Feature => ({
    type: 'Feature',
    properties: {},
    geometry: { type: 'LineString', coordinates },
  });
  const steps = (from: number, to: number, by: number) =>
    Array.from({ length: (to - from) / by + 1 }, (_, i) => from + i * by);
  return collection([
    ...steps(-180, 180, 30).map((x) => line(steps(-85, 85, 5).map((y) => [x, y]))),
    ...steps(-60, 60, 30).map((y) => line([[-180, y], [180, y]])), // biome-ignore format: one pair
  ]);
}

/** Paint that depends on the theme: layer, property, colour. */
const THEMED = [
  ['water', 'background-color', 'water'],
  ['graticule', 'line-color', 'coast'],
  ['land', 'fill-color', 'land'],
  ['coast', 'line-color', 'coast'],
  ['wishes', 'fill-color', 'mine'],
  ['wishes-line', 'line-color', 'mine'],
  ['messages', 'circle-color', 'message'],
  ['around', 'circle-color', 'mine'],
  ['rehearsal', 'circle-stroke-color', 'mine'],
  ['matches', 'circle-color', 'match'],
  ['best', 'circle-stroke-color', 'match'],
] as const;

export class WorldMap {
  readonly map: MapLibre;
  readonly ready: Promise<void>; // it can be drawn on; the panel does not wait for it
  private readonly waiting = new Map<SourceName, Feature[]>();
  private readonly filled = new Set<SourceName>();
  private isReady = false;

  constructor(container: HTMLElement) {
    const data = Object.fromEntries(SOURCES.map((name) => [name, { type: 'geojson', data: collection() }]));
    this.map = new MapLibre({
      container,
      center: [10, 30],
      zoom: 1.4,
      maxPitch: 0,
      dragRotate: false,
      attributionControl: { compact: true, customAttribution: 'Land: Natural Earth' },
      fadeDuration: 0,
      style: {
        version: 8,
        sources: {
          land: {
            type: 'geojson',
            data: new URL('land.json', document.baseURI).href,
            maxzoom: 8,
            tolerance: 0.2,
          },
          graticule: { type: 'geojson', data: graticule() },
          ...(data as Record<string, { type: 'geojson'; data: FeatureCollection }>),
        },
        layers: [
          { id: 'water', type: 'background' },
          { id: 'land', type: 'fill', source: 'land' },
          { id: 'coast', type: 'line', source: 'land', paint: { 'line-width': 0.7 } },
          {
            id: 'graticule',
            type: 'line',
            source: 'graticule',
            paint: { 'line-width': 0.5, 'line-opacity': 0.4 },
          },
          { id: 'wishes', type: 'fill', source: 'wishes', paint: { 'fill-opacity': 0.12 } },
          { id: 'wishes-line', type: 'line', source: 'wishes', paint: { 'line-width': 1.5 } },
          {
            id: 'messages',
            type: 'circle',
            source: 'messages',
            paint: { 'circle-radius': 2.5, 'circle-opacity': ['get', 'glow'] },
          },
          { id: 'around', type: 'circle', source: 'around', paint: { 'circle-radius': 3.5 } },
          {
            id: 'rehearsal',
            type: 'circle',
            source: 'rehearsal',
            paint: { 'circle-radius': 5, 'circle-opacity': 0, 'circle-stroke-width': 1.5 },
          },
          {
            id: 'matches',
            type: 'circle',
            source: 'matches',
            paint: { 'circle-radius': 5, 'circle-opacity': ['get', 'glow'] },
          },
          {
            id: 'best',
            type: 'circle',
            source: 'best',
            paint: { 'circle-radius': 8, 'circle-opacity': 0, 'circle-stroke-width': 2 },
          },
        ],
      },
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.addControl(new NavigationControl({ showCompass: false }), 'top-left');
    this.ready = new Promise((resolve) => {
      this.map.once('load', () => {
        this.isReady = true;
        for (const [name, features] of this.waiting) this.show(name, features);
        resolve();
      });
    });
    this.map.once('style.load', () => this.paint());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.paint());
  }

  private paint(): void {
    for (const [layer, property, name] of THEMED) this.map.setPaintProperty(layer, property, colour(name));
  }

  /** Nothing instead of nothing is not drawn again. */
  show(name: SourceName, features: Feature[]): void {
    if (features.length === 0 && !this.filled.has(name)) return;
    if (features.length === 0) this.filled.delete(name);
    else this.filled.add(name);
    if (!this.isReady) {
      this.waiting.set(name, features);
      return;
    }
    (this.map.getSource(name) as GeoJSONSource | undefined)?.setData(collection(features));
  }

  view(): { west: number; south: number; east: number; north: number } {
    const seen = this.map.getBounds();
    return { west: seen.getWest(), south: seen.getSouth(), east: seen.getEast(), north: seen.getNorth() };
  }

  centre(): { lon: number; lat: number } {
    const { lng, lat } = this.map.getCenter().wrap();
    return { lon: lng, lat };
  }
}
