import './style.css';
import { Api, type Change } from './api.ts';
import { Best } from './best.ts';
import { element, field, say } from './dom.ts';
import { Feed } from './feed.ts';
import { watchFigures } from './figures.ts';
import { WorldMap } from './map.ts';
import { Matches } from './matches.ts';
import { Mover } from './mover.ts';
import { Stream } from './stream.ts';
import { WishForm } from './wish.ts';
import { Wishes } from './wishes.ts';

const identity = {
  subscriber: localStorage.getItem('subscriber') ?? 'me',
  key: localStorage.getItem('key') ?? '',
};
const api = new Api(identity);
const status = element('status');

const world = new WorldMap(element('map'));
const feed = new Feed(api, (features) => world.show('messages', features));
const matches = new Matches(world);
const best = new Best(api, world, () => void refresh());
const mover = new Mover(api, world, () => void refresh());
const wishes = new Wishes(api, world, (wish) => mover.forget(wish.id));
const stream = new Stream(api, take, (state, bad) => say(status, `${identity.subscriber}: ${state}`, bad));

function take(change: Change): void {
  if (change.nearcast.operation === 'match' && change.type === 'Feature') matches.add(change);
  best.take(change);
  mover.take(change);
}

async function refresh(): Promise<void> {
  const held = await wishes.load();
  await best.watch(held.find((wish) => wish.kind === 'rank')?.id ?? null);
  await mover.watch(held);
}

function whoAmI(): void {
  const form = element<HTMLFormElement>('identity');
  field(form, 'subscriber').value = identity.subscriber;
  field(form, 'key').value = identity.key;
  form.addEventListener('submit', () => {
    localStorage.setItem('subscriber', field(form, 'subscriber').value.trim() || 'me');
    localStorage.setItem('key', field(form, 'key').value.trim());
  }); // and the page is loaded again
}

async function main(): Promise<void> {
  whoAmI();
  new WishForm(api, world, () => feed.state.last, () => void refresh()); // biome-ignore format: short
  void feed.start();
  void watchFigures(api, feed, element('figures'));
  const { last } = await api.log(0, 0);
  await refresh();
  stream.start(last);
  await world.ready;
  document.body.dataset.ready = 'yes';
}

main().catch((error: Error) => say(status, error.message, true));
