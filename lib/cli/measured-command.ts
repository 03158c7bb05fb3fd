// The skeleton of every command that measures: its lines as they come, a bar below them, the report at the end.
import { exitCodes, type Io, type Output } from './io.js';
import { ProgressBar } from './progress/bar.js';
import { estimateLine } from './progress/estimate.js';
import type { ReportOutput } from './reports/report-output.js';
import { terminalLines } from './terminal/terminal.js';
import { terminalWidth } from './terminal/terminal-width.js';
import { UsageError } from './usage-error.js';
import { rankCount } from '../measure/job.js';
import type { RunEvents } from '../measure/common-run.js';
import type { Tool } from '../report/index.js';
import { outcome, type Report } from '../results/result.js';

export interface MeasuredCommand {
  /** What it prints. */
  readonly tool: Pick<Tool, 'head' | 'rows' | 'foot'>;
  readonly output: ReportOutput;
  readonly io: Io;
  /** What the bar counts: `sizes`; undefined: there is no bar. */
  readonly unit: string | undefined;
  /** What to type for a first look, where a run takes long: `--quick`. */
  readonly quicker?: string | undefined;
  /**
   * Where the lines of the run go while it measures; default standard output, where its summary goes. What goes to
   * standard error is printed in every format.
   */
  readonly lines?: Output;
  /** Once the report is written, in the process that prints. */
  readonly after?: (report: Report) => Promise<void>;
}

/** Writes lines above the bar. */
export type Print = (lines: readonly string[]) => void;

/**
 * Runs a benchmark. Only the process that its events are called in prints and writes a report.
 *
 * @param run is given the events to pass on, and what further lines are printed with
 * @returns the exit code
 */
export async function measured(
  command: MeasuredCommand,
  run: (events: Required<RunEvents>, print: Print) => Promise<Report>,
): Promise<number> {
  const { tool, output, io, unit, lines = io.stdout } = command;
  const apart = lines !== io.stdout;
  const room = terminalWidth(lines, io.env);
  const shown: { bar?: ProgressBar; told?: true } = {};
  const write = (text: readonly string[], to: Output): void => {
    shown.bar?.clear(to);
    const told = terminalLines(text, to, io.env);
    to.write(told.map((line) => `${line}\n`).join(''));
  };
  const print: Print = (text) => {
    if (apart || output.showsText) write(text, lines);
  };
  const events: Required<RunEvents> = {
    onStart(head, ranks) {
      shown.told = true;
      print(tool.head(head, ranks, room));
    },
    onProgress(done, total) {
      if (unit === undefined) return;
      shown.bar ??= new ProgressBar(io, total, unit);
      shown.bar.show(done);
    },
    onEstimate(secondsLeft, done, total) {
      // After the first line a terminal has the bar.
      if (!output.showsText || (done > 0 && io.stderr.isTTY === true)) return;
      const line = estimateLine(secondsLeft, done, total, command.quicker);
      if (line !== undefined) io.stderr.write(`${line}\n`);
    },
    onCases(cases) {
      print(tool.rows(cases, room));
    },
  };
  const report = await run(events, print).finally(() => shown.bar?.stop());
  if (shown.told === true) {
    if (output.showsText) {
      const foot = tool.foot(report, terminalWidth(io.stdout, io.env));
      // What parts it from the lines above belongs to them: a file that gets the foot alone begins with it.
      const parted = apart && foot[0] === '' ? 1 : 0;
      write(foot.slice(0, parted), lines);
      write(foot.slice(parted), io.stdout);
    }
    output.write(report);
    await command.after?.(report);
  }
  // Of some benchmarks only rank 0 has the cases.
  return shown.told !== true && report.cases.length === 0 ? exitCodes.ok : exitCodeOf(report);
}

/** Ranks of the job, or as many as -n says. */
export function ranksOf(
  { ranks }: { readonly ranks?: number },
  alone: number,
  advice = 'Omit -n under a launcher.',
): number {
  return rankCount(ranks, alone, (expected, asked) =>
    UsageError.of('-n', expected, String(asked), advice),
  );
}

/** A run succeeded where no case failed and one was right. */
export function exitCodeOf(report: Report): number {
  const { ok, error } = outcome(report);
  return error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure;
}
