// Checks of option values for optimizers and schedules.
import { argumentError } from '../errors.js';
import { notConstructed, unknownOption } from '../checks.js';

/** The range of a number. */
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
 * Checks a number by a rule.
 *
 * @throws TypeError unless it is a number, RangeError outside the range.
 */
export function checkedNumber(value: unknown, name: string, rule: NumberRule): number {
  const { expected, holds } = rules[rule];
  if (typeof value !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, value);
  }
  if (!holds(value)) throw argumentError('ERR_OUT_OF_RANGE', name, expected, value);
  return value;
}

/** A plain object of options: a class instance is a mistake. */
export function checkedObject(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an object', value);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** @throws TypeError for an unknown option: names the likely one, and all others */
export function refuseUnknown(
  options: Readonly<Record<string, unknown>>,
  known: readonly string[],
  owner: string,
): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw unknownOption(name, known, owner);
  }
}

/** @throws TypeError if an abstract class is instantiated */
export function assertConcrete(
  made: unknown,
  base: { readonly name: string },
  instead: string,
): void {
  if (made === base) throw notConstructed(base.name, instead);
}
