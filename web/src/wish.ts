/** A new wish: draw where, type what, see what it would have got, save. */
import type { Api } from './api.ts';
import { element, field, make, say } from './dom.ts';
import { Drawing, type Tool } from './draw.ts';
import type { WorldMap } from './map.ts';
import { described, type Region } from './regions.ts';

const PAUSE = 300; // milliseconds without typing before the log is asked
const LOOK_BACK = 20_000; // messages
const BROAD = 0.1; // share of all messages that makes one wonder

export class WishForm {
  private region: Region | null = null;
  private timer = 0;
  private asking = new AbortController();
  private readonly form = element<HTMLFormElement>('wish');
  private readonly where = element<HTMLOutputElement>('region');
  private readonly told = element<HTMLOutputElement>('rehearsal');
  private readonly drawing: Promise<Drawing>;

  constructor(
    private readonly api: Api,
    private readonly world: WorldMap,
    private readonly lastSeq: () => number,
    private readonly saved: () => void,
  ) {
    const drawn = (region: Region) => this.drawn(region);
    this.drawing = world.ready.then(
      () => new Drawing(world, drawn, (reason) => say(this.where, reason, true)),
    );
    for (const button of this.buttons) {
      button.addEventListener('click', () => void this.begin(button.dataset.draw as Tool));
    }
    field(this.form, 'expression').addEventListener('input', () => this.rehearseSoon());
    this.form.addEventListener('submit', (event) => void this.save(event));
    this.form.addEventListener('reset', () => this.clear());
    document.addEventListener('keydown', (event) => event.key === 'Escape' && this.press(null));
  }

  private get buttons(): HTMLButtonElement[] {
    return [...this.form.querySelectorAll<HTMLButtonElement>('[data-draw]')];
  }

  private press(tool: Tool | null): void {
    for (const button of this.buttons) button.setAttribute('aria-pressed', `${button.dataset.draw === tool}`);
  }

  private async begin(tool: Tool): Promise<void> {
    this.region = null;
    this.press(tool === 'view' ? null : tool);
    say(
      this.where,
      tool === 'polygon' ? 'Click each corner, then the first or Enter' : 'Click twice on the map',
    );
    (await this.drawing).begin(tool);
  }

  private drawn(region: Region): void {
    this.region = region;
    this.press(null);
    say(this.where, described(region));
    this.rehearseSoon();
    field(this.form, 'expression').focus();
  }

  private rehearseSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.rehearse(), PAUSE);
  }

  /** What the wish would have got from the last messages. */
  private async rehearse(): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const expression = field(this.form, 'expression').value.trim();
    if (this.region === null || expression === '') return;
    try {
      const after = Math.max(0, this.lastSeq() - LOOK_BACK);
      const run = await this.api.dryRun(expression, this.region, after, this.asking.signal);
      const share = run.scanned === 0 ? 0 : run.matched / run.scanned;
      const hint = share > BROAD ? ' Too broad?' : run.matched === 0 ? ' Too narrow?' : '';
      this.told.replaceChildren(
        'Would have matched ',
        make('strong', '', run.matched.toLocaleString('en')),
        ` of the last ${run.scanned.toLocaleString('en')} messages (${(100 * share).toFixed(1)} %).${hint}`,
      );
      this.told.classList.remove('bad');
      this.world.show(
        'rehearsal',
        run.examples.map((example) => example.data),
      );
    } catch (error) {
      if ((error as Error).name !== 'AbortError') say(this.told, (error as Error).message, true);
    }
  }

  private async save(event: Event): Promise<void> {
    event.preventDefault();
    const expression = field(this.form, 'expression').value.trim();
    if (this.region === null || expression === '') {
      say(this.told, this.region === null ? 'Draw a region first.' : 'Type some words first.', true);
      return;
    }
    try {
      await this.api.save({ kind: 'match', expression, ...this.region });
      this.form.reset();
      this.saved();
    } catch (error) {
      say(this.told, (error as Error).message, true);
    }
  }

  private clear(): void {
    this.asking.abort();
    this.region = null;
    this.press(null);
    void this.drawing.then((drawing) => drawing.clear());
    this.world.show('rehearsal', []);
    say(this.where, 'Nothing drawn yet');
    say(this.told, '');
  }
}
