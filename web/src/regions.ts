/** Regions as the API takes them, from shapes as they are drawn, and back to shapes for the map. */
import type { Feature, Polygon, Position } from 'geojson';

export type Box = { west: number; south: number; east: number; north: number };
export type Circle = { lon: number; lat: number; radius_m: number };
export type Drawn = { region: Polygon };
export type Region = Box | Circle | Drawn;

const EARTH = 6_371_008.8; // metres
const STEPS = 72;

/** Longitude into -180..180: a map that is turned around the earth counts on. */
export function wrapped(lon: number): number {
  return lon >= -180 && lon <= 180 ? lon : ((((lon + 180) % 360) + 360) % 360) - 180;
}

function bounds(ring: Position[]): Box {
  const [xs, ys] = [ring.map((p) => p[0] as number), ring.map((p) => p[1] as number)];
  return { west: Math.min(...xs), south: Math.min(...ys), east: Math.max(...xs), north: Math.max(...ys) };
}

export function boxOf(ring: Position[]): Box {
  return boxFrom(bounds(ring));
}

/** West > east: across the 180th meridian. */
export function boxFrom({ west, south, east, north }: Box): Box {
  const all = east - west >= 360;
  return {
    west: all ? -180 : wrapped(west),
    south: Math.max(south, -90),
    east: all ? 180 : wrapped(east),
    north: Math.min(north, 90),
  };
}

export function circleOf(ring: Position[], radiusKm: number): Circle {
  const { west, south, east, north } = bounds(ring);
  return { lon: wrapped((west + east) / 2), lat: (south + north) / 2, radius_m: Math.round(radiusKm * 1000) };
}

export function polygonOf(ring: Position[]): Drawn {
  const { west, east } = bounds(ring);
  if (west < -180 || east > 180)
    throw new Error('a polygon may not cross the 180th meridian; draw a box or a circle');
  return { region: { type: 'Polygon', coordinates: [ring] } };
}

/** Points at a distance from a centre, all around. */
export function ringAround({ lon, lat, radius_m }: Circle): Position[] {
  const [far, phi, lambda] = [radius_m / EARTH, (lat * Math.PI) / 180, (lon * Math.PI) / 180];
  return Array.from({ length: STEPS + 1 }, (_, i) => {
    const bearing = (2 * Math.PI * i) / STEPS;
    const y = Math.asin(Math.sin(phi) * Math.cos(far) + Math.cos(phi) * Math.sin(far) * Math.cos(bearing));
    const x = Math.atan2(
      Math.sin(bearing) * Math.sin(far) * Math.cos(phi),
      Math.cos(far) - Math.sin(phi) * Math.sin(y),
    );
    return [((lambda + x) * 180) / Math.PI, (y * 180) / Math.PI];
  });
}

/** A wish's region as something to draw; null for what is not drawn (WKT that somebody else wrote). */
export function shapeOf(wish: Record<string, unknown>): Feature<Polygon> | null {
  const shape = (coordinates: Position[][]): Feature<Polygon> => ({
    type: 'Feature',
    properties: { id: wish.id, kind: wish.kind },
    geometry: { type: 'Polygon', coordinates },
  });
  if (typeof wish.radius_m === 'number') return shape([ringAround(wish as unknown as Circle)]);
  if (typeof wish.west === 'number') {
    const { west, south, east, north } = wish as unknown as Box;
    const far = east < west ? east + 360 : east;
    return shape([
      [
        [west, south],
        [far, south],
        [far, north],
        [west, north],
        [west, south],
      ],
    ]);
  }
  const region = wish.region as { type?: string; geometry?: Polygon; coordinates?: Position[][] } | undefined;
  const polygon = region?.type === 'Feature' ? region.geometry : region;
  return polygon?.type === 'Polygon' && polygon.coordinates ? shape(polygon.coordinates) : null;
}

export function described(region: Region): string {
  const degrees = (value: number) => value.toFixed(2);
  if ('radius_m' in region) {
    return `Circle of ${(region.radius_m / 1000).toFixed(1)} km around ${degrees(region.lat)}, ${degrees(region.lon)}`;
  }
  if ('west' in region) {
    return `Box ${degrees(region.south)}, ${degrees(region.west)} to ${degrees(region.north)}, ${degrees(region.east)}`;
  }
  return `Polygon of ${(region.region.coordinates[0]?.length ?? 1) - 1} corners`;
}
