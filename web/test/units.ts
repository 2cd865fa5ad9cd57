import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atlas, land } from '../basemap.mjs';
import type { MessageFeature } from '../src/api.ts';
import { rate, read } from '../src/metrics.ts';
import { entered, left } from '../src/ranked.ts';
import { boxFrom, circleOf, polygonOf, ringAround, shapeOf, wrapped } from '../src/regions.ts';
import { Frames } from '../src/sse.ts';

test('events are whole, whatever pieces they come in', () => {
  const text = 'retry: 1000\n\n:\n\nid: 7\nevent: match\ndata: {"a": 1}\n\nevent: leave\ndata: x\n\nid: 9';
  const whole = new Frames().take(text);
  assert.deepEqual(whole, [
    { event: 'match', id: '7', data: '{"a": 1}' },
    { event: 'leave', id: null, data: 'x' },
  ]);
  for (const size of [1, 2, 5]) {
    const [pieces, frames] = [[] as unknown[], new Frames()];
    for (let i = 0; i < text.length; i += size) pieces.push(...frames.take(text.slice(i, i + size)));
    assert.deepEqual(pieces, whole);
  }
});

test('figures: sums over labels, rates that never run backwards', () => {
  const text =
    '# HELP nearcast_a x\nnearcast_a_total{kind="x"} 1.0\nnearcast_a_total{kind="y"} 4.0\nnearcast_b 2e3\n';
  const [before, now] = [read(text, 0), read(text.replace('4.0', '14.0'), 2000)];
  assert.equal(now.values.get('a_total'), 15);
  assert.equal(now.values.get('b'), 2000);
  assert.equal(rate('a_total', before, now), 5);
  assert.equal(rate('a_total', now, { ...before, at: 3000 }), 0);
  assert.equal(rate('a_total', null, now), 0);
});

test('regions around the 180th meridian', () => {
  assert.deepEqual(
    [wrapped(190), wrapped(-190), wrapped(180), wrapped(-180), wrapped(540)],
    [-170, 170, 180, -180, -180],
  );
  assert.deepEqual(boxFrom({ west: 170, south: -95, east: 200, north: 10 }), {
    west: 170,
    south: -90,
    east: -160,
    north: 10,
  });
  assert.deepEqual(boxFrom({ west: -300, south: 0, east: 300, north: 10 }), {
    west: -180,
    south: 0,
    east: 180,
    north: 10,
  });
  assert.throws(
    () =>
      polygonOf([
        [170, 0],
        [190, 0],
        [170, 5],
        [170, 0],
      ]),
    /180th meridian/,
  );
  const crossing = shapeOf({ id: 'a', kind: 'match', west: 170, south: 0, east: -170, north: 5 });
  assert.deepEqual(crossing?.geometry.coordinates[0]?.[1], [190, 0]);
});

test('a circle that was drawn is the circle that is sent', () => {
  const circle = { lon: 20, lat: 60, radius_m: 500_000 };
  const again = circleOf(ringAround(circle), 500);
  assert.ok(Math.abs(again.lon - 20) < 1e-9);
  assert.ok(Math.abs(again.lat - 60) < 0.01, `${again.lat}`);
  assert.equal(again.radius_m, 500_000);
});

test('a ranking by its changes', () => {
  const message = (id: number) => ({ type: 'Feature', id }) as unknown as MessageFeature;
  let list = entered([], message(1), 0.5);
  list = entered(list, message(2), 0.9);
  list = entered(list, message(3), 0.5);
  assert.deepEqual(
    list.map(({ feature }) => feature.id),
    [2, 3, 1],
  );
  list = left(list, message(2));
  assert.deepEqual(
    list.map(({ feature, isNew }) => [feature.id, isNew]),
    [
      [3, true],
      [1, false],
    ],
  );
  assert.equal(entered(list, message(3), 0.5).length, 2);
});

test('land is cut at the 180th meridian and nowhere jumps across', () => {
  const { features } = land(atlas());
  assert.ok(features.length > 1000);
  for (const { geometry } of features) {
    for (const ring of geometry.coordinates) {
      assert.deepEqual(ring[0], ring.at(-1));
      for (let i = 1; i < ring.length; i++) assert.ok(Math.abs(ring[i][0] - ring[i - 1][0]) <= 180);
      assert.ok(
        ring.every(([x, y]: number[]) => Math.abs(x as number) <= 180 && Math.abs(y as number) <= 90),
      );
    }
  }
});
