// A sum over all hosts beside what their ways carry, and which part of them is slow where no single way is.
import type { CaseResult, Report } from '../../results/result.js';
import { mebibyte, percentText, timeText } from '../../results/units.js';
import { failedWherePoor } from '../part.js';

/** Of what the ways carry: between two processes that have just as much to do besides. */
const goodRatio = 0.4;
const poorRatio = 0.1;

/**
 * What an all-reduce takes where each host sends and receives at once what a ring passes on: 2 (n - 1) / n of the array.
 *
 * @param secondsPerByte of a way while both directions are busy
 */
export function ringSeconds(hosts: number, bytes: number, secondsPerByte: number): number {
  return ((2 * (hosts - 1)) / hosts) * bytes * secondsPerByte;
}

/** The sums as parts; the large ones by their fastest call. */
export function judgedSums(
  { cases }: Report,
  hosts: readonly string[],
  secondsPerByte: number | undefined,
): CaseResult[] {
  return cases.map((one): CaseResult => {
    const { bytes: size, placement } = one.parameters;
    const parameters = {
      between: 'hosts',
      ranks: hosts.length,
      bytes: size ?? null,
      placement: placement ?? null,
    };
    const named: CaseResult = { ...one, parameters };
    if (named.status !== 'ok') return named;
    const { bytes, statistics } = named;
    // What the machine's own memory allows says nothing of a network.
    const whole = { ...named, limit: null };
    if (secondsPerByte === undefined || bytes < mebibyte) {
      const text = `${timeText(statistics.medianSeconds)} a call; at this size its fixed cost decides`;
      return { ...whole, verdict: { level: 'none', text, likelyCause: null } };
    }
    const ratio = ringSeconds(hosts.length, bytes, secondsPerByte) / statistics.minSeconds;
    const level = ratio >= goodRatio ? 'good' : ratio >= poorRatio ? 'fair' : 'poor';
    return failedWherePoor({
      ...whole,
      verdict: {
        level,
        text: `${percentText(ratio)} of what the slowest way carries both ways at once`,
        likelyCause:
          level === 'good'
            ? null
            : 'links that several hosts share: switches, and ways between racks',
      },
    });
  });
}

/**
 * The part of the hosts that is slow by itself: halves, halves of these, while just one of two is slow.
 *
 * @param areSlow whether sums over each of these are slow, all at once
 */
export async function slowPart(
  hosts: readonly string[],
  areSlow: (parts: readonly (readonly string[])[]) => Promise<readonly boolean[]>,
): Promise<readonly string[]> {
  const half = Math.ceil(hosts.length / 2);
  const parts = [hosts.slice(0, half), hosts.slice(half)].filter((part) => part.length > 1);
  if (hosts.length <= 2 || parts.length === 0) return hosts;
  const slow = await areSlow(parts);
  const [only, another] = parts.filter((_, at) => slow[at] === true);
  return only === undefined || another !== undefined ? hosts : slowPart(only, areSlow);
}
