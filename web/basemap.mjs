// The world's land, from the package world-atlas (Natural Earth 1:50m), as GeoJSON for public/land.json.
// The atlas is a sphere without seams; a flat map needs it cut at the 180th meridian, which d3-geo does.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { geoContains, geoEquirectangular, geoStream } from 'd3-geo';
import { feature } from 'topojson-client';

const DECIMALS = 3; // about 100 m

/** All rings of a geometry on the sphere, cut at the 180th meridian, in degrees. */
export function flatRings(geometry) {
  const cut = geoEquirectangular()
    .scale(180 / Math.PI)
    .translate([0, 0])
    .precision(0);
  const rings = [];
  let ring = null;
  const sink = {
    point: (x, y) => ring?.push([rounded(x), rounded(-y)]),
    lineStart: () => {
      ring = [];
    },
    lineEnd: () => {
      if (ring.length > 2) rings.push(closed(ring));
      ring = null;
    },
    polygonStart: () => {},
    polygonEnd: () => {},
    sphere: () => {},
  };
  geoStream(geometry, cut.stream(sink));
  return rings;
}

function rounded(degrees) {
  return Math.round(degrees * 10 ** DECIMALS) / 10 ** DECIMALS;
}

function closed(ring) {
  const [first, last] = [ring[0], ring[ring.length - 1]];
  return first[0] === last[0] && first[1] === last[1] ? ring : [...ring, first];
}

/** Twice the signed area in the plane. */
function area(ring) {
  let sum = 0;
  for (let i = 1; i < ring.length; i++) sum += ring[i - 1][0] * ring[i][1] - ring[i][0] * ring[i - 1][1];
  return sum;
}

/** The land as one Feature for each outer ring; seas inside of land are holes of it. */
export function land(geometry) {
  const polygons = geometry.coordinates.flatMap((rings) => {
    const [outer, ...holes] = rings;
    const flat = flatRings({ type: 'Polygon', coordinates: [outer] });
    const inner = holes.flatMap((hole) => flatRings({ type: 'Polygon', coordinates: [[...hole].reverse()] }));
    return flat.map((ring, i) => [ring, ...(i === 0 ? inner : [])]);
  });
  const features = polygons
    .filter(([outer]) => area(outer) !== 0)
    .map((coordinates) => ({ type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates } }));
  return { type: 'FeatureCollection', features };
}

export function atlas() {
  const path = createRequire(import.meta.url).resolve('world-atlas/land-50m.json');
  const topology = JSON.parse(readFileSync(path, 'utf8'));
  return feature(topology, topology.objects.land).features[0].geometry;
}

export { geoContains };

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const out = fileURLToPath(new URL('./public/land.json', import.meta.url));
  mkdirSync(fileURLToPath(new URL('./public', import.meta.url)), { recursive: true });
  const text = JSON.stringify(land(atlas()));
  writeFileSync(out, text);
  console.log(`public/land.json: ${(text.length / 1e6).toFixed(1)} MB`);
}
