// Groups cases into the series of a chart, and names them.
import { outcomeParameters, repeatsOf } from '../../results/repeats.js';
import { hasMeasurement, type CaseIdentity, type CaseResult } from '../../results/result.js';
import { mergedRepeats, type Measured } from '../repeats.js';
import { parameterWords } from './parameters.js';
import type { LabelledRun } from './types.js';
import { groupBy } from '../../results/grouping.js';

/** A measured case with its run. */
export interface Entry {
  readonly run: LabelledRun;
  readonly result: Measured;
}

/** A case with its repeats: in the cycles of a run, and in the runs of a set. */
export interface RepeatedEntry extends Entry {
  /** Its figures are the medians of the repeats. */
  readonly result: Measured;
  readonly repeats: readonly Measured[];
}

/** The common name of a run and its repeats. */
export function setOf({ label, set = label }: LabelledRun): string {
  return set;
}

export function measuredEntries(runs: readonly LabelledRun[]): Entry[] {
  return runs.flatMap((run) =>
    run.report.cases.filter(hasMeasurement).map((result) => ({ run, result })),
  );
}

/** The measured cases, with repeats merged. */
export function repeatedEntries(
  runs: readonly LabelledRun[],
  counts: (result: CaseResult) => boolean = () => true,
): RepeatedEntry[] {
  return [...groupBy(runs, setOf).values()].flatMap((set) => {
    const measured = set.flatMap(({ report }) =>
      report.cases.filter(hasMeasurement).filter(counts),
    );
    return [...repeatsOf(measured).values()].map((repeats) => ({
      run: set[0]!,
      result: mergedRepeats(repeats),
      repeats,
    }));
  });
}

/** A parameter as a number; undefined if it is not one. */
export function numeric(result: CaseResult, name: string): number | undefined {
  const value = result.parameters[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** Further options of names. */
export interface Naming {
  /** Entries that differ only in these parameters get the same name: they form a series. */
  readonly ignored?: readonly string[];
  /** Parameters to include whenever a case has them. */
  readonly told?: readonly string[];
  /** The run's name; absent: that of its set. */
  readonly runOf?: (run: LabelledRun) => string;
  /** Whether the case's name comes first even if it is common. */
  readonly named?: boolean;
}

interface Named {
  readonly run?: LabelledRun;
  readonly result: CaseIdentity;
}

/** Parameters with several values among the cases, and those of `told` with one. */
function telling(entries: readonly Named[], told: readonly string[]): string[] {
  const names = [...new Set(entries.flatMap(({ result }) => Object.keys(result.parameters)))];
  return names.filter((name) => {
    const values = new Set(entries.map(({ result }) => result.parameters[name] ?? null));
    return values.size > 1 || (told.includes(name) && !values.has(null));
  });
}

/**
 * The distinguishing name of each entry: the run if there are several, the case's name if they differ, and the
 * parameters with several values within that name.
 */
export function seriesNames<E extends Named>(
  entries: readonly E[],
  { ignored = [], told = [], runOf = setOf, named = false }: Naming = {},
): Map<E, string> {
  const runs = entries.map(({ run }) => (run === undefined ? '' : runOf(run)));
  const byRun = new Set(runs).size > 1;
  const groups = groupBy(entries, ({ result }) => result.name);
  const without: ReadonlySet<string> = new Set([...ignored, ...outcomeParameters]);
  const parameters = new Map(
    [...groups].map(([name, group]) => [
      name,
      telling(group, told).filter((one) => !without.has(one)),
    ]),
  );
  return new Map(
    entries.map((entry, index) => {
      const { result } = entry;
      const parts = [
        ...(byRun ? [runs[index] ?? ''] : []),
        ...(named || groups.size > 1 ? [result.name] : []),
        ...(parameters.get(result.name) ?? []).map((name) =>
          parameterWords(name, result.parameters[name]),
        ),
      ].filter((part) => part !== '');
      return [entry, parts.length > 0 ? parts.join(', ') : result.name];
    }),
  );
}

export function slug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}

/** Lines of at most `width` characters, broken at spaces if possible. */
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
