// A list of ranks that a caller gives.
import { argumentError } from '../errors.js';
import { arrayOf, rankOf } from '../validate.js';

/** At least one rank of `size`, each once. */
export function distinctRanks(given: unknown, size: number): number[] {
  const list = arrayOf(given, 'ranks', 'an array of ranks').map((rank, i) =>
    rankOf(rank, `ranks[${i}]`, size),
  );
  if (list.length > 0 && new Set(list).size === list.length) return list;
  const text = list.length === 0 ? 'none' : 'one twice';
  throw argumentError('ERR_INVALID_ARG_VALUE', 'ranks', 'at least one rank, each once', { text });
}
