// Which cases belong together in a chart, and what tells them apart in words.
import { hasMeasurement, type CaseResult, type Measurement } from '../../results/result.js';
import { parameterWords } from './parameters.js';
import type { LabelledRun } from './types.js';

/** A case that was measured, and the run it is of. */
export interface Entry {
  readonly run: LabelledRun;
  readonly result: CaseResult & Measurement;
}

/** All measured cases of the runs, in order. */
export function measuredEntries(runs: readonly LabelledRun[]): Entry[] {
  return runs.flatMap((run) =>
    run.report.cases.filter(hasMeasurement).map((result) => ({ run, result })),
  );
}

export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** A parameter's value as a number; undefined where it is not one. */
export function numeric(result: CaseResult, name: string): number | undefined {
  const value = result.parameters[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/**
 * What tells each entry from the others: the run where there are several, the case's name where they differ, and the
 * parameters that have more than one value among them. Entries that differ by `ignored` parameters alone get the same
 * words: they are one series.
 */
export function seriesNames(
  entries: readonly Entry[],
  ignored: readonly string[],
): Map<Entry, string> {
  const several = (read: (entry: Entry) => unknown): boolean =>
    new Set(entries.map((entry) => JSON.stringify(read(entry) ?? null))).size > 1;
  const parameters = [
    ...new Set(entries.flatMap(({ result }) => Object.keys(result.parameters))),
  ].filter((name) => !ignored.includes(name) && several(({ result }) => result.parameters[name]));
  const byRun = several(({ run }) => run.label);
  const byName = several(({ result }) => result.name);
  return new Map(
    entries.map((entry) => {
      const { run, result } = entry;
      const parts = [
        ...(byRun ? [run.label] : []),
        ...(byName ? [result.name] : []),
        ...parameters.map((name) => parameterWords(name, result.parameters[name])),
      ];
      return [entry, parts.length > 0 ? parts.join(', ') : result.name];
    }),
  );
}

/** `all_reduce, 4 ranks` as a part of an id. */
export function slug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}

/** Lines of at most `width` characters, broken between words where there are blanks. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
    for (; line.length > width; line = line.slice(width)) lines.push(line.slice(0, width));
  }
  lines.push(line);
  return lines;
}
