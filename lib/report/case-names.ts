// What cases beside one another are called: what they have in common is said once, and each by what tells it apart.
import type { CaseIdentity, Scalar } from '../results/result.js';
import { parameterText, parameterTitle, parameterWords } from './charts/parameters.js';

/** What follows from another parameter, or is said in words elsewhere. */
export const derivedParameters: ReadonlySet<string> = new Set(['count', 'flow']);

/** What a case that is alone is called by. */
const leading: ReadonlySet<string> = new Set(['bytes', 'placement']);

/** A value that all cases have, with what it is of: `4 ranks`, `dtype float32`. */
export function constantWords(name: string, value: Scalar | undefined): string {
  return typeof value === 'string'
    ? `${parameterTitle(name)} ${value}`
    : parameterWords(name, value);
}

/** Which cases have what some of them tell: nothing for all, ` (NAMES)`, undefined where only a part of a name's do. */
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
  /** What all have in common: `dtype float32`, `2 ranks`, and of some names `op sum (all_reduce)`. */
  readonly common: readonly string[];
  /** What tells a case of its name from the others: `4 MiB`, `out-of-place`. */
  readonly parts: (one: CaseIdentity) => readonly string[];
}

/** The value of a parameter; undefined where the case has none. */
function valueOf({ parameters }: CaseIdentity, name: string): Exclude<Scalar, null> | undefined {
  return parameters[name] ?? undefined;
}

/** Names for cases in one list. */
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
