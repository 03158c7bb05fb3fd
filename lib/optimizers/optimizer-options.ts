// Rules of option values, for optimizers and schedules alike.
import { argumentError } from '../errors.js';
import { notConstructed, unknownOption } from '../checks.js';

/** What a number may be. */
export type NumberRule = 'finite' | 'notNegative' | 'positive' | 'unit' | 'count' | 'updates';

const rules: Readonly<
  Record<NumberRule, { readonly expected: string; readonly holds: (value: number) => boolean }>
> = {
  finite: { expected: 'a finite number', holds: Number.isFinite },
  notNegative: {
    expected: 'a finite number of at least 0',
    holds: (value) => Number.isFinite(value) && value >= 0,
  },
  positive: {
    expected: 'a finite number above 0',
    holds: (value) => Number.isFinite(value) && value > 0,
  },
  unit: {
    expected: 'a number of at least 0 and below 1',
    holds: (value) => value >= 0 && value < 1,
  },
  count: {
    expected: 'an integer of at least 0',
    holds: (value) => Number.isSafeInteger(value) && value >= 0,
  },
  updates: {
    expected: 'an integer of at least 1',
    holds: (value) => Number.isSafeInteger(value) && value >= 1,
  },
};

/**
 * A number that follows the rule.
 *
 * @throws TypeError for what is no number, RangeError for one outside the rule.
 */
export function checkedNumber(value: unknown, name: string, rule: NumberRule): number {
  const { expected, holds } = rules[rule];
  if (typeof value !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  }
  if (!holds(value)) throw argumentError('ERR_OUT_OF_RANGE', name, expected, value);
  return value;
}

/** An object of options without a prototype of its own making: a class instance is a mistake. */
export function checkedObject(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an object', value);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** @throws TypeError for an option that is not one of `known`: it names the one that was meant, and all others. */
export function refuseUnknown(
  options: Readonly<Record<string, unknown>>,
  known: readonly string[],
  owner: string,
): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw unknownOption(name, known, owner);
  }
}

/** @throws TypeError where a class that only others extend is made itself. */
export function assertConcrete(
  made: unknown,
  base: { readonly name: string },
  instead: string,
): void {
  if (made === base) throw notConstructed(base.name, instead);
}
