// One call of the public interface, right as it stands; and what makes such calls.
import type { Random } from '../support/random.js';

export interface Call {
  readonly name: string;
  /** Right; a defect takes the place of one of them, or of one of their properties. */
  readonly args: readonly unknown[];
  readonly run: (...args: unknown[]) => unknown;
  /** Throws where the result of the right call is wrong. */
  readonly check?: (result: unknown) => void;
  /** The code that the right call ends with on this machine. */
  readonly refusedWith?: readonly string[];
}

/** Calls of one kind, on objects that they share. */
export interface Family {
  /** @param wrong - whether it will be made with a defect */
  next(random: Random, wrong: boolean): Call;
  /** After a call that may have changed, or ended, what is shared. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/** An object whose methods are called past their types. */
export type Loose = Record<string, (...args: unknown[]) => unknown>;
export const loose = (object: object): Loose => object as Loose;

/** A family without anything shared. */
export function plainFamily(next: (random: Random) => Call): Family {
  const nothing = () => Promise.resolve();
  return { next, renew: nothing, close: nothing };
}

export function right(holds: boolean, what: string): void {
  if (!holds) throw new Error(`wrong result: ${what}`);
}

/** Whether the numbers of an array are these, but for rounding. */
export function same(given: unknown, expected: readonly number[], what: string): void {
  const numbers = Array.from(given as ArrayLike<number | bigint>, Number);
  right(numbers.length === expected.length, `${what}: length ${String(numbers.length)}`);
  numbers.forEach((one, i) => {
    const wanted = expected[i]!;
    const near = Math.abs(one - wanted) <= 1e-5 * Math.max(1, Math.abs(wanted));
    right(near, `${what}: [${String(i)}] is ${String(one)}, not ${String(wanted)}`);
  });
}

/** The same, once the call is over. */
export const becomes = (given: unknown, expected: readonly number[], what: string) => () => {
  same(given, expected, what);
};
