// A bar for long work: on standard error, only on a terminal, and only while nothing else is printed there.
import { Presets, SingleBar } from 'cli-progress';

import type { Io } from './io.js';

/** Counts steps up to a total. Where there is no terminal, or somebody reads lines on it, it shows nothing. */
export class ProgressBar {
  private readonly bar: SingleBar | undefined;

  /**
   * @param unit what is counted: `sizes`
   * @param printsLines whether results are printed to standard output as they come
   */
  constructor(io: Io, total: number, unit: string, printsLines: boolean) {
    const readAlong = printsLines && io.stdout.isTTY === true;
    if (io.stderr.isTTY !== true || readAlong || total < 2) return;
    const format = `{bar} {value}/{total} ${unit}, {eta} s left`;
    const options = { stream: io.stderr, format, clearOnComplete: true, hideCursor: true };
    this.bar = new SingleBar(options, Presets.shades_classic);
    this.bar.start(total, 0);
  }

  /** Called between measurements, never inside a timed region. */
  advance(): void {
    this.bar?.increment();
  }

  stop(): void {
    this.bar?.stop();
  }
}
