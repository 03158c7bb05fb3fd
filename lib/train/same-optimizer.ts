// Checks that the workers of a store use the same optimizer. A store only sums, so each setting is pushed as small
// integers with their squares, whose sums tell whether all are equal.
import { createHash } from 'node:crypto';

import { GradlinkError } from '../errors.js';
import type { KVStore } from '../kvstore/kvstore.js';
import { kindOf, settingsOf } from './optimizer-state.js';
import type { InnerOptimizer } from './types.js';

/** The class with the names of its settings, and their values; further ones are not compared. */
const mostSettings = 32;
/** Numbers per setting: two of 16 bits with their squares, whose sums over 1,000 workers are exact. */
const numbersEach = 4;

/**
 * Called by all workers of the store before the first step.
 *
 * @param key - a unique key, which stays in the store
 * @throws GradlinkError ERR_MISMATCH on all workers if the optimizers differ, with the difference.
 */
export async function assertSameOptimizer(
  kv: KVStore,
  key: string,
  optimizer: Pick<InnerOptimizer, 'applyGradients'>,
  op: string,
): Promise<void> {
  if (kv.numWorkers === 1) return;
  const settings = Object.entries(settingsOf(optimizer)).sort(([a], [b]) => (a < b ? -1 : 1));
  const kind = `${kindOf(optimizer)} with ${settings.map(([name]) => name).join(', ')}`;
  const facts = [['its class', kind] as const, ...settings].slice(0, mostSettings);
  const own = new Float64Array(mostSettings * numbersEach);
  facts.forEach(([, text], i) => own.set(fingerprint(text), i * numbersEach));
  const sums = new Float64Array(own.length);
  await kv.init(key, new Float64Array(own.length));
  await kv.pushPull(key, own, sums);
  const n = kv.numWorkers;
  for (let i = 0; i < own.length; i += 2) {
    const [sum, squares] = [sums[i]!, sums[i + 1]!];
    if (n * squares === sum * sum) continue;
    const [name, text] = facts[Math.floor(i / numbersEach)] ?? ['the number of its settings', ''];
    throw new GradlinkError(
      'ERR_MISMATCH',
      `${op}: expected the same optimizer on every worker; ${name} is ${text} on worker ${kv.rank}, and another on ` +
        'another worker: give all workers the same',
      { op, usable: true },
    );
  }
}

function fingerprint(text: string): readonly number[] {
  const digest = createHash('sha256').update(text).digest();
  return [digest.readUInt16LE(0), digest.readUInt16LE(2)].flatMap((one) => [one, one * one]);
}
