// Names of the cases in a list: common facts once, then the distinguishing ones per case.
import type { CaseIdentity, Scalar } from '../results/result.js';
import { parameterText, parameterTitle, parameterWords } from './charts/parameters.js';

/** Derived from another parameter, or described in words elsewhere. */
export const derivedParameters: ReadonlySet<string> = new Set(['count', 'flow']);

/** Name a case on its own. */
const leading: ReadonlySet<string> = new Set(['bytes', 'placement']);

/** A common value with its parameter: `4 ranks`, `dtype float32`. */
export function constantWords(name: string, value: Scalar | undefined): string {
  return typeof value === 'string'
    ? `${parameterTitle(name)} ${value}`
    : parameterWords(name, value);
}

/** The cases that a fact applies to: empty for all, ` (NAMES)`, undefined if it applies to only some of a name's. */
export function ofWhom(
  telling: readonly CaseIdentity[],
  all: readonly CaseIdentity[],
): string | undefined {
  if (telling.length === all.length) return '';
  const names = new Set(telling.map(({ name }) => name));
  const named = all.filter(({ name }) => names.has(name));
  return named.length === telling.length ? ` (${[...names].join(', ')})` : undefined;
}

export interface CaseNames {
  /** Common facts: `dtype float32`, `2 ranks`, or for some names `op sum (all_reduce)`. */
  readonly common: readonly string[];
  /** The distinguishing facts of a case among those of its name: `4 MiB`, `out-of-place`. */
  readonly parts: (one: CaseIdentity) => readonly string[];
}

/** The value of a parameter; undefined if absent. */
function valueOf({ parameters }: CaseIdentity, name: string): Exclude<Scalar, null> | undefined {
  return parameters[name] ?? undefined;
}

export function caseNames(cases: readonly CaseIdentity[]): CaseNames {
  const common: string[] = [];
  const telling: string[] = [];
  const names = new Set(cases.flatMap(({ parameters }) => Object.keys(parameters)));
  for (const name of names) {
    if (derivedParameters.has(name)) continue;
    const having = cases.filter((one) => valueOf(one, name) !== undefined);
    const values = new Set(having.map((one) => valueOf(one, name)));
    if (values.size === 0) continue;
    const whose = values.size === 1 ? ofWhom(having, cases) : undefined;
    if (whose === undefined || (cases.length === 1 && leading.has(name))) telling.push(name);
    else common.push(`${constantWords(name, [...values][0])}${whose}`);
  }
  return {
    common,
    parts: (one) =>
      telling.flatMap((name) => {
        const value = valueOf(one, name);
        if (value === undefined) return [];
        return [name === 'bytes' ? parameterText(name, value) : parameterWords(name, value)];
      }),
  };
}
