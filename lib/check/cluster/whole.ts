// A sum over all hosts beside what their ways carry, and which part of them is slow where no single way is.
import type { SumBound } from '../sums.js';

/** Of what the ways carry: between two processes that have just as much to do besides. */
const shares = { good: 0.4, poor: 0.1 };

/**
 * An all-reduce where each host sends and receives at once what a ring passes on: 2 (n - 1) / n of the array.
 *
 * @param secondsPerByte of the slowest way while both directions are busy
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
 * The part of the hosts that is slow by itself: halves, halves of these, while just one of two is slow.
 *
 * @param isSlow whether the sum over these is slow
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
