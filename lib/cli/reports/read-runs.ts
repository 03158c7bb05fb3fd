// Runs that commands read: files, folders of files, and names of baselines.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { UsageError } from '../usage-error.js';
import type { Baselines, NamedRuns } from '../../compare/index.js';
import { statusOf } from '../../files/index.js';
import { printable, printableLines } from '../../printable.js';
import { readReport } from '../../results/read-report.js';

/** Misuse and unreadable files are the caller's to mend; other errors stay what they are. */
export function unreadable(what: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code !== 'string') return error;
  const { message } = error as Error;
  // Most name the file themselves.
  const named = message.includes(printableLines(what));
  return new UsageError(named ? `${message}.` : `${what}: ${message}.`);
}

/** Reads what the user named; what is wrong with it is a usage error. */
export function readable<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unreadable(what, error);
  }
}

function filesOf(path: string, isFolder: boolean): string[] {
  if (!isFolder) return [path];
  const files = readdirSync(path).filter((name) => name.endsWith('.json'));
  return files.sort().map((name) => join(path, name));
}

/**
 * The runs under a name typed on the command line: `-` is standard input, and a file or folder of that name comes before
 * a baseline.
 *
 * @param baselines where names are looked up
 * @param subject the argument or option that it is
 */
export function readRuns(name: string, baselines: Baselines, subject = 'RUN'): NamedRuns {
  if (name === '-') {
    const file = '/dev/stdin';
    return { name: 'standard input', reports: [readable(file, () => readReport(file))] };
  }
  const found = readable(name, () => statusOf(name));
  if (found === undefined) {
    if (!readable(name, () => baselines.has(name))) {
      const names = baselines.names();
      throw UsageError.of(
        subject,
        'a file or folder of reports, or the name of a baseline',
        name,
        names.length === 0
          ? 'Reports are written with --output RUN.json; there are no baselines yet.'
          : `Baselines: ${names.join(', ')}.`,
      );
    }
    return { name, reports: readable(name, () => baselines.read(name)) };
  }
  const files = readable(name, () => filesOf(name, found.isDirectory()));
  if (files.length === 0) {
    throw UsageError.of(subject, 'a folder with reports (*.json)', `${name}, which has none`);
  }
  return {
    name: printable(name),
    reports: files.map((file) => readable(file, () => readReport(file))),
  };
}
