// Where a command's report goes: --format and --output, alike for all commands that measure.
import { accessSync, constants } from 'node:fs';
import { dirname, extname } from 'node:path';

import { Option, type Command } from 'commander';

import type { Io } from '../io.js';
import { read } from '../parse.js';
import { choice } from '../../options/kinds.js';
import { UsageError } from '../usage-error.js';
import type { Report } from '../../results/result.js';
import { targetOf, writeFileAtomic } from '../../files/index.js';
import { renderReport, reportFormats, type ReportFormat } from '../../report/index.js';

/** --format and --output as given. */
export interface OutputOptions<F extends string> {
  readonly format?: F;
  readonly output?: string;
}

export type ReportOptions = OutputOptions<ReportFormat>;

const byEnding: Readonly<Record<string, ReportFormat>> = {
  '.json': 'json',
  '.csv': 'csv',
  '.md': 'markdown',
  '.xml': 'junit',
  '.txt': 'text',
};

/** What ends in none of these would hold what its name does not say. */
export function checkEnding(
  option: string,
  file: string,
  endings: readonly string[],
  advice?: string,
): void {
  if (endings.includes(extname(file).toLowerCase())) return;
  throw UsageError.of(option, `a file that ends in ${endings.join(', ')}`, file, advice);
}

/**
 * The format that was asked for: by --format, else by the ending of --output. A file without an ending, such as
 * `/dev/fd/3`, gets the one that is used without a file.
 *
 * @param byEnding what the endings stand for, in lower case
 * @throws UsageError where the ending stands for none of the formats
 */
export function outputFormat<F extends string>(
  { format, output }: { readonly format?: F | undefined; readonly output?: string | undefined },
  byEnding: Readonly<Record<string, F>>,
  otherwise: F,
): F {
  if (format !== undefined) return format;
  if (output === undefined || extname(output) === '') return otherwise;
  checkEnding(
    '--output',
    output,
    Object.keys(byEnding),
    'With --format it may be called anything.',
  );
  return byEnding[extname(output).toLowerCase()] ?? otherwise;
}

/**
 * In which format a command writes, and where to: alike for all commands.
 *
 * @param formats the first is the default
 * @param what is written, for the help
 */
export function addOutputOptions(
  command: Command,
  formats: readonly string[],
  what: string,
): Command {
  const aliases: Readonly<Record<string, string>> = formats.includes('markdown')
    ? { md: 'markdown' }
    : {};
  // Of a command in the way of nccl-tests -o is the operation.
  const short = command.options.some((option) => option.short === '-o') ? '' : '-o, ';
  return command
    .option(
      '--format <format>',
      `${formats.join(', ')} (default: ${formats[0]!}, or by the ending of --output)`,
      read(choice(formats, aliases)),
    )
    .addOption(new Option('--json', 'as --format json').implies({ format: 'json' }))
    .option(`${short}--output <file>`, `write ${what} to this file, in --format`);
}

export function addReportOptions(command: Command): Command {
  return addOutputOptions(command, reportFormats, 'the report');
}

/** Fails before anything is measured when the report could not be written afterwards. */
export function checkOutput(file: string, option = '--output'): void {
  try {
    const target = targetOf(file);
    if (target.kind === 'descriptor') return;
    // It is written beside the old one first.
    if (target.kind === 'file') accessSync(dirname(target.path), constants.W_OK);
    if (target.kind === 'stream' || target.before !== undefined) {
      accessSync(target.path, constants.W_OK);
    }
  } catch (error) {
    throw UsageError.of(
      option,
      'a file that can be written',
      `${file} (${(error as Error).message})`,
    );
  }
}

/** The report's destination; made before measuring, written to after. */
export class ReportOutput {
  readonly format: ReportFormat;
  /** Whether people read along: the report itself does not go to standard output in another format. */
  readonly showsText: boolean;
  private readonly file: string | undefined;

  constructor(
    options: ReportOptions,
    private readonly io: Io,
  ) {
    this.file = options.output;
    this.format = outputFormat(options, byEnding, 'text');
    this.showsText = this.format === 'text' || this.file !== undefined;
    if (this.file !== undefined) checkOutput(this.file);
  }

  /** Writes the report to its file, or, unless it was shown as text already, to standard output. */
  write(report: Report): void {
    if (this.file !== undefined) writeFileAtomic(this.file, [renderReport(report, this.format)]);
    else if (this.format !== 'text') this.io.stdout.write(renderReport(report, this.format));
  }
}
