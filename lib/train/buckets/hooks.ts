// Parses compression options.
import { argumentError } from '../../errors.js';
import type { NativeBucketHook } from '../../native/train.js';
import {
  integer,
  type KnownOptions,
  maxInt32,
  notOneOf,
  optionNames,
  optionsObject,
} from '../../checks.js';
import type { BucketHook, BucketHookName, HalfHook, PowerSgdHook, TwoBitHook } from './types.js';

/** The kinds of compression. */
export const bucketHooks = ['float16', 'bfloat16', '2bit', 'powersgd'] as const;

const halfNames = optionNames<HalfHook>({ type: true });
const hookNames: Readonly<Record<BucketHookName, KnownOptions>> = {
  float16: halfNames,
  bfloat16: halfNames,
  '2bit': optionNames<TwoBitHook>({ type: true, threshold: true }),
  powersgd: optionNames<PowerSgdHook>({
    type: true,
    rank: true,
    startPass: true,
    minCompressionRate: true,
    seed: true,
  }),
};

/** PowerSGD fits a product to the previous pass, so there must be one. */
const leastStartPass = 2;

/** A plain all-reduce. */
export const plainHook: NativeBucketHook = {
  type: 'plain',
  threshold: 0.5,
  rank: 1,
  startPass: 10,
  minCompressionRate: 2,
  seed: 0,
};

function positive(value: unknown, name: string): number {
  if (typeof value !== 'number' || !(value > 0) || !Number.isFinite(value)) {
    throw argumentError('ERR_OUT_OF_RANGE', name, 'a number above 0', value);
  }
  return value;
}

/** Validates, and fills in defaults. */
export function parseHook(given: BucketHook | BucketHookName | undefined): NativeBucketHook {
  if (given === undefined) return plainHook;
  const hook = typeof given === 'string' ? { type: given } : given;
  if (typeof hook !== 'object' || !bucketHooks.includes(hook.type)) {
    throw notOneOf(given, 'hook', bucketHooks);
  }
  optionsObject(hook, hookNames[hook.type], `hook '${hook.type}'`);
  const { threshold } = { threshold: undefined, ...hook };
  const { rank, startPass, minCompressionRate, seed } = {
    rank: undefined,
    startPass: undefined,
    minCompressionRate: undefined,
    seed: undefined,
    ...hook,
  };
  return {
    type: hook.type,
    threshold: positive(threshold ?? plainHook.threshold, 'hook.threshold'),
    rank: integer(rank ?? plainHook.rank, 'hook.rank', 1, 1024),
    startPass: integer(
      startPass ?? plainHook.startPass,
      'hook.startPass',
      leastStartPass,
      maxInt32,
    ),
    minCompressionRate: positive(
      minCompressionRate ?? plainHook.minCompressionRate,
      'hook.minCompressionRate',
    ),
    seed: integer(seed ?? plainHook.seed, 'hook.seed', 0, maxInt32),
  };
}

/** Whether it keeps a residual, which belongs to one bucket layout. */
export function feedsBack({ type }: NativeBucketHook): boolean {
  return type === '2bit' || type === 'powersgd';
}
