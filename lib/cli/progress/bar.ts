// A bar for long work: on standard error, and only on a terminal. In a process of a job, whose terminal is that of the
// process that started it, it says there how far it is.
import { Presets, SingleBar } from 'cli-progress';

import type { Io, Output } from '../io.js';
import { hasListener, progressLine } from './messages.js';

const barWidth = 24;
/** Milliseconds between messages, as between drawings. */
const messageInterval = 100;

/** Counts steps up to a total. It is there from the first `show` to `stop`, which must follow. */
export class ProgressBar {
  private readonly bar: SingleBar | undefined;
  private readonly tells: boolean;
  private startedAt: number | undefined;
  private done = 0;
  /** Steps that took no time: they say nothing about how long the rest takes. */
  private skipped = 0;
  private drawn = false;
  private toldAt = -Infinity;

  /**
   * @param total 0 where this process shows nothing: ranks other than 0. Of a single step there is
   *   nothing to show, unless it has parts
   * @param unit what is counted: `sizes`
   */
  constructor(
    private readonly io: Io,
    private readonly total: number,
    private readonly unit: string,
    { parts = false }: { readonly parts?: boolean } = {},
  ) {
    const wanted = total > (parts ? 0 : 1);
    const terminal = io.stderr.isTTY === true;
    this.tells = wanted && !terminal && hasListener(io);
    if (!wanted || !terminal) return;
    this.bar = new SingleBar(
      // Cut at the terminal's width instead of switching its wrapping of lines off, for other lines too.
      {
        stream: io.stderr,
        format: '{bar} {text}',
        barsize: barWidth,
        clearOnComplete: true,
        linewrap: true,
      },
      Presets.shades_classic,
    );
  }

  /** Another step is done. Called between measurements, never inside a timed region. */
  advance(): void {
    this.show(this.done + 1);
  }

  /** Another step is done that took no time. */
  skip(): void {
    this.skipped += 1;
    this.advance();
  }

  /**
   * @param done of the total
   * @param note what is being done
   * @param part of the step that is being done, 0 to 1
   */
  show(done: number, note = '', part = 0): void {
    this.done = done;
    if (this.tells) this.tell();
    if (this.bar === undefined) return;
    const now = done + part;
    const made = now - this.skipped;
    const time = performance.now();
    const milliseconds = time - (this.startedAt ??= time);
    const left = Math.ceil(((milliseconds / made) * (this.total - now)) / 1e3);
    const text =
      `${String(done)}/${String(this.total)} ${this.unit}` +
      `${made > 0 ? `, ${String(left)} s left` : ''}${note === '' ? '' : `: ${note}`}`;
    if (this.drawn) this.bar.update(now, { text });
    else this.bar.start(this.total, now, { text });
    this.drawn = true;
  }

  /** Before anything is written to an output: on a terminal the bar goes away, until the next step. */
  clear(output: Output = this.io.stderr): void {
    if (!this.drawn || output.isTTY !== true) return;
    this.bar?.stop();
    this.drawn = false;
  }

  stop(): void {
    this.clear();
    if (!this.tells) return;
    const { done, total, unit } = this;
    this.io.stderr.write(progressLine({ done, total, unit, over: true }));
  }

  private tell(): void {
    const now = performance.now();
    if (now - this.toldAt < messageInterval) return;
    this.toldAt = now;
    const { done, total, unit } = this;
    this.io.stderr.write(progressLine({ done, total, unit }));
  }
}
