// The bar of a job: its processes say how far they are, and the process that started them draws it.
import type { Io } from '../io.js';
import { ProgressBar } from './bar.js';
import { environmentFor, hasListener, readProgress } from './messages.js';

/** Takes the messages out of what a job writes, and draws them, or passes them on to the process that asked for them. */
export class ProgressRelay {
  private readonly draws: boolean;
  private readonly passes: boolean;
  private bar: ProgressBar | undefined;
  private drawn = '';

  /** @param wanted whether anything is to be shown */
  constructor(
    private readonly io: Io,
    wanted = true,
  ) {
    this.draws = wanted && io.stderr.isTTY === true;
    this.passes = wanted && hasListener(io);
  }

  /** The environment that the processes are to have, from that which they would have. */
  environment(env: Io['env']): Io['env'] {
    return environmentFor(env, this.draws || this.passes);
  }

  /** @returns whether this line of a process's standard error was a message */
  take(line: Buffer): boolean {
    if (!this.draws && !this.passes) return false;
    const message = readProgress(line);
    if (message === undefined) return false;
    if (this.passes) this.io.stderr.write(line);
    else {
      const { done, total, unit, over } = message;
      const what = `${String(total)} ${unit}`;
      if (this.bar === undefined || what !== this.drawn) {
        this.stop();
        this.bar = new ProgressBar(this.io, total, unit);
        this.drawn = what;
      }
      this.bar.show(done);
      if (over === true) this.stop();
    }
    return true;
  }

  /** Before another line is written to one of the two. */
  clear(name: 'stdout' | 'stderr'): void {
    this.bar?.clear(this.io[name]);
  }

  stop(): void {
    this.bar?.stop();
    this.bar = undefined;
  }
}
