// Compares an all-reduce over all hosts with the bandwidth of their links, and finds the slow part if no single link is
// slow.
import type { SumBound } from '../sums.js';

/** Shares of the links' bandwidth, measured between two otherwise busy processes. */
const shares = { good: 0.4, poor: 0.1 };

/**
 * The bound of a ring all-reduce: each host sends and receives 2 (n - 1) / n of the array at once.
 *
 * @param secondsPerByte of the slowest link with both directions busy
 */
export function ringBound(hosts: number, bytes: number, secondsPerByte: number): SumBound {
  return {
    seconds: ((2 * (hosts - 1)) / hosts) * bytes * secondsPerByte,
    of: 'the slowest way carries both ways at once',
    likelyCause: 'links that several hosts share: switches, and ways between racks',
    ...shares,
  };
}

/**
 * Bisects the hosts for a part that is slow by itself, as long as exactly one half is slow.
 *
 * @param isSlow whether an all-reduce over these is slow
 */
export async function slowPart<Host>(
  hosts: readonly Host[],
  isSlow: (part: readonly Host[]) => Promise<boolean>,
): Promise<readonly Host[]> {
  const half = Math.ceil(hosts.length / 2);
  const slow: (readonly Host[])[] = [];
  for (const part of [hosts.slice(0, half), hosts.slice(half)]) {
    if (hosts.length > 2 && part.length > 1 && (await isSlow(part))) slow.push(part);
  }
  const [only, another] = slow;
  return only === undefined || another !== undefined ? hosts : slowPart(only, isSlow);
}
