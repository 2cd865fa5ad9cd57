// What somebody does with the page, in a real browser. Started by tests/web/page.py, which has a server with a live feed.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const { NEARCAST_PAGE: server, NEARCAST_PICTURES: pictures, CHROMIUM: executablePath } = process.env;
const FLAGS = [
  '--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking',
  '--disable-component-update --disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader',
].flatMap((line) => line.split(' '));
const SLOW = { timeout: 180_000 }; // drawn without a graphics card, maybe beside other work

let browser;
let page; // of one visitor, who does one thing after the other
const elsewhere = [];
const complaints = [];

before(async () => {
  browser = await chromium.launch({ executablePath, args: FLAGS });
  page = await visit();
}, SLOW);
after(() => browser.close());

/** A new visitor; whatever the page asks of other machines or complains about is kept. */
async function visit(options = {}) {
  const context = await browser.newContext({ viewport: { width: 820, height: 520 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(SLOW.timeout);
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server))
      elsewhere.push(request.url());
  });
  page.on('console', (message) => {
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text()))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(`${server}/`);
  await page.waitForSelector('body[data-ready]');
  return page;
}

/** The figure of this name at the top, as a number. */
async function figure(name) {
  const text = await page.locator(`#figures div:has(dt:text-is("${name}")) dd`).textContent();
  return Number.parseFloat(text.replaceAll(',', ''));
}

async function until(what, holds) {
  const end = Date.now() + SLOW.timeout;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `still not so: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function click(x, y) {
  const map = await page.locator('#map canvas.maplibregl-canvas').boundingBox();
  await page.mouse.move(map.x + x * map.width, map.y + y * map.height, { steps: 4 });
  await page.mouse.down();
  await page.mouse.up();
}

test('messages flow, and figures say so', SLOW, async () => {
  await until('messages flow', async () => (await figure('messages/s')) > 0);
  await until('rejections are counted', async () => (await figure('rejected')) > 0);
  assert.ok((await figure('wishes')) >= 50);
  assert.match(await page.locator('#status').textContent(), /me: connected/);
  const drawn = await page.locator('#map').screenshot({ timeout: SLOW.timeout });
  assert.ok(drawn.length > 20_000, `an empty map? ${drawn.length} bytes`);
});

test('a drawn box: dry run, saved, matched', SLOW, async () => {
  await page.click('[data-draw=rectangle]');
  await click(0.05, 0.15);
  await click(0.95, 0.85);
  await until('a box is drawn', async () => (await page.locator('#region').textContent()).startsWith('Box'));
  await page.fill('#wish [name=expression]', 'coffee OR (');
  await until('a slip is explained', async () =>
    /at character/.test(await page.locator('#rehearsal').textContent()),
  );
  await page.fill('#wish [name=expression]', 'coffee OR pizza OR concert OR tonight OR free');
  const told = page.locator('#rehearsal');
  await until('the dry run tells', async () => /matched \d+ of the last/.test(await told.textContent()));
  const [, matched] = /matched ([\d,]+) of/.exec(await told.textContent());
  assert.ok(Number(matched.replaceAll(',', '')) > 0);
  await page.screenshot({ path: `${pictures}/dry-run.png`, timeout: SLOW.timeout });
  await page.click('#wish button[type=submit]');
  await until('it is among my wishes', async () =>
    /coffee OR pizza/.test(await page.locator('#wishes').textContent()),
  );
  await until('matches come', async () => (await page.locator('#matches li').count()) > 2);
});

test('circles and polygons', SLOW, async () => {
  await page.click('[data-draw=circle]');
  await click(0.5, 0.4);
  await click(0.6, 0.5);
  await until('a circle', async () =>
    /^Circle of [\d.]+ km/.test(await page.locator('#region').textContent()),
  );
  await page.click('[data-draw=polygon]');
  for (const [x, y] of [[0.4, 0.3], [0.6, 0.3], [0.6, 0.6]]) await click(x, y); // biome-ignore format: corners
  await page.keyboard.press('Enter');
  await until('a polygon', async () =>
    /^Polygon of 3 corners/.test(await page.locator('#region').textContent()),
  );
});

test('a ranking that changes', SLOW, async () => {
  await page.fill('#ranking [name=words]', 'free coffee tonight concert pizza');
  await page.click('#ranking button');
  const list = page.locator('#best');
  await until('it holds five', async () => (await list.locator('li').count()) === 5);
  const first = await list.textContent();
  await until('it changes', async () => (await list.textContent()) !== first);
  const scores = (await list.locator('.aside').allTextContents()).map(Number);
  assert.deepEqual(
    scores,
    scores.toSorted((a, b) => b - a),
    'best first',
  );
});

test('a subscriber that is dragged, and pushed by keys', SLOW, async () => {
  await page.fill('#follow [name=words]', 'coffee OR tonight OR free OR concert');
  await page.fill('#follow [name=km]', '1500');
  await page.click('#follow button');
  const mark = page.locator('.mover');
  await mark.waitFor();
  const where = async () => {
    const answer = await page.request.get(`${server}/v1/subscriptions?subscriber=me`);
    const wish = (await answer.json()).subscriptions.find(({ id }) => id === 'me/moving');
    return wish === undefined ? null : [wish.lon, wish.lat];
  };
  await until('it is there', async () => (await where()) !== null);
  const [lon, lat] = await where();
  const at = await mark.boundingBox();
  await page.mouse.move(at.x + 13, at.y + 13);
  await page.mouse.down();
  await page.mouse.move(at.x + 163, at.y - 37, { steps: 10 });
  await page.mouse.up();
  await until(
    'it was dragged north-east',
    async () => (await where())[0] > lon + 5 && (await where())[1] > lat + 1,
  );
  const [dragged] = await where();
  await mark.focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowLeft');
  await until('it was pushed west', async () => (await where())[0] < dragged - 3);
  await until('the page tells', async () =>
    /[1-9]\d* recent messages .* moved [1-9]/.test(await page.locator('#moving').textContent()),
  );
  await page.click('#wish button[type=reset]');
  await page.evaluate(() => document.querySelector('#panel').scrollTo(0, 0));
  await page.setViewportSize({ width: 1280, height: 800 });
  await until('it shows what is around', async () => (await page.locator('#around li').count()) > 0);
  await page.screenshot({ path: `${pictures}/page.png`, timeout: SLOW.timeout });
});

test('with the keyboard alone', SLOW, async () => {
  await page.locator('[data-draw=rectangle]').focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter'); // This view
  await until('a region', async () => (await page.locator('#region').textContent()).startsWith('Box'));
  assert.equal(await page.evaluate(() => document.activeElement.name), 'expression');
  await page.keyboard.type('by keyboard alone');
  await page.keyboard.press('Enter');
  await until('saved', async () => /by keyboard alone/.test(await page.locator('#wishes').textContent()));
  await page.locator('#wishes li:has-text("by keyboard alone") button').focus();
  await page.keyboard.press('Enter');
  await until('removed', async () => !/by keyboard alone/.test(await page.locator('#wishes').textContent()));
});

for (const [name, options] of Object.entries({
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
})) {
  test(`looks right: ${name}`, SLOW, async () => {
    const other = await visit(options);
    await until('matches come', async () => (await other.locator('#matches li').count()) > 0);
    const [wide, seen] = await other.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= seen, `${wide} pixels wide in a window of ${seen}`);
    await other.screenshot({ path: `${pictures}/${name}.png`, timeout: SLOW.timeout });
    await other.context().close();
  });
}

test('the description of the API', SLOW, async () => {
  const other = await browser.newPage();
  other.on('request', (request) => request.url().startsWith(server) || elsewhere.push(request.url()));
  await other.goto(`${server}/docs`);
  assert.ok((await other.locator('details').count()) > 20);
  await other.close();
});

test('nothing was asked of another machine, and nothing went wrong', () => {
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(complaints, []);
});
