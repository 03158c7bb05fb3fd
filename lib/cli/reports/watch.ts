// `gradlink watch`: the live plot of a run that takes long.

import { exitCodes, type Io } from '../io.js';
import { ownCommand } from '../own-command.js';
import { addTable } from '../parse.js';
import { readable, unreadable } from './read-runs.js';
import type { Register } from '../register.js';
import { UsageError } from '../usage-error.js';
import { statusOf } from '../../files/index.js';
import { startFailure } from '../../launch/processes.js';
import { text } from '../../options/kinds.js';
import { optionTable, type ReadOf } from '../../options/table.js';
import { namedPlot } from '../../report/plot.js';
import { Figures } from '../../watch/figures.js';
import { followCommand, followFile, type OnLine } from '../../watch/follow.js';

const examples = `
Draws the figures that a run prints: iterations of measure, rows of collectives and nccl-tests (bus bandwidth out of place
and in place), tables of OSU and nvbandwidth, rates, times and losses of trainings (images/s, img/sec, samples/s,
tokens/s, it/s, GB/s, ms/step, loss). Other lines pass through. Prefixes of launchers and loggers, and colours, are left
out. On a terminal the plot is drawn anew as figures come; elsewhere it is printed once, at the end.

A single argument that is a file is followed as it grows, until interrupted; anything else is a command to run.

Examples:
  $ gradlink watch gradlink measure --kv-store device --num-batches 200
  $ gradlink watch node train.js
  $ gradlink watch train.log
  $ gradlink watch --only 'in place' mpirun -n 8 all_reduce_perf -b 8 -e 128M -f 2

Exit status: that of the command; of a file 0; 1 where no figure came, 2 wrong usage.`;

const table = optionTable({
  only: {
    flag: '--only <words>',
    help: 'draw only the figures that have these words in their name',
    kind: text(),
  },
});

const rows = 10;
/** Above and below a plot. */
const captions = 2;
/** Clears the terminal from here. */
const toEnd = '\u001b[0J';
const widest = 100;
/** Not more often: drawing must not slow the run that shares the cores. */
const pauseMs = 200;

/** The drawing at the end of a terminal, replaced at each redraw. */
class Drawing {
  readonly figures: Figures;
  private drawn = 0;
  private last = -Infinity;

  constructor(
    private readonly io: Io,
    only: string | undefined,
  ) {
    this.figures = new Figures(only);
  }

  private get live(): boolean {
    return this.io.stdout.isTTY === true;
  }

  line(text: string, end: string): void {
    const has = this.figures.add(text);
    if (!has) {
      this.erase();
      this.io.stdout.write(`${text}${end}`);
    }
    if (this.live && performance.now() - this.last >= pauseMs) this.draw(this.mostDrawn);
  }

  /** The last drawing, which stays: all lines. */
  finish(): void {
    this.draw(Infinity);
    this.drawn = 0;
  }

  /** What a terminal has scrolled away cannot be erased. */
  private get mostDrawn(): number {
    const room = (this.io.stdout.rows ?? Infinity) - 1;
    return Math.max(1, Math.floor(room / (rows + captions)));
  }

  private erase(): void {
    // Up so many lines.
    if (this.drawn > 0) this.io.stdout.write(`\u001b[${String(this.drawn)}A${toEnd}`);
    this.drawn = 0;
  }

  private draw(most: number): void {
    this.erase();
    // A progress bar may stand where it begins.
    if (this.live) this.io.stdout.write(toEnd);
    this.last = performance.now();
    const columns = Math.min(this.io.stdout.columns ?? widest, widest) - 1;
    const lines = this.figures
      .latest(most)
      .flatMap((line) => namedPlot(line, { columns, rows }))
      // A line that the terminal breaks would be two to erase.
      .map((line) => line.slice(0, columns));
    if (lines.length === 0) return;
    this.io.stdout.write(`${lines.join('\n')}\n`);
    this.drawn = this.live ? lines.length : 0;
  }
}

/** Whether a single argument is a file to follow; a folder or a pipe of that name neither is one nor can be run. */
function isFile(path: string): boolean {
  const found = readable(path, () => statusOf(path));
  if (found === undefined) return false;
  // A name without a slash may be a program elsewhere on the path.
  return found.isFile() || path.includes('/');
}

const isSpawnError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error && String(error.syscall).startsWith('spawn');

async function follow(command: readonly string[], io: Io, drawing: Drawing): Promise<number> {
  const [first, ...rest] = command;
  if (first === undefined) throw UsageError.of('watch', 'a file or a command', 'nothing');
  const onLine: OnLine = (line, end) => {
    drawing.line(line, end);
  };
  const stop = new AbortController();
  const end = (): void => {
    stop.abort();
  };
  const file = rest.length === 0 && isFile(first);
  // The terminal interrupts a command by itself; its last plot is still to come.
  const interrupted = file ? end : (): void => undefined;
  io.on('SIGINT', interrupted);
  io.on('SIGTERM', end);
  try {
    if (!file)
      return await followCommand(ownCommand([first, ...rest]), io.env, onLine, stop.signal);
    await followFile(first, onLine, stop.signal);
    return exitCodes.ok;
  } catch (error) {
    if (file) throw unreadable(first, error);
    if (!isSpawnError(error)) throw error;
    const { exitCode, what } = startFailure(first, error);
    io.stderr.write(`gradlink watch: ${first} ${what}.\n`);
    return exitCode;
  } finally {
    io.off('SIGINT', interrupted);
    io.off('SIGTERM', end);
  }
}

export const registerWatch: Register = (program, io, done) => {
  const watch = program
    .command('watch')
    .description('draw the figures of a long run in the terminal while it runs')
    .argument('<run...>', 'a command, or a file that a run writes its output to');
  addTable(watch, table)
    .passThroughOptions()
    .addHelpText('after', examples)
    .action(async (command: readonly string[], { only }: ReadOf<typeof table>) => {
      const drawing = new Drawing(io, only);
      const status = await follow(command, io, drawing);
      drawing.finish();
      if (drawing.figures.lines.length > 0 || status !== exitCodes.ok) {
        done(status);
        return;
      }
      io.stderr.write(
        'gradlink: watch found no figures that it knows; see gradlink watch --help\n',
      );
      done(exitCodes.failure);
    });
};
