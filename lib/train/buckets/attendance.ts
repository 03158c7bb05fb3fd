// Which ranks make a pass and which have run out of data: one small all-gather before each pass.
import type { Communicator } from '../../communicator/communicator.js';
import { argumentError, ruleError } from '../../errors.js';
import { aFunction, optionNames, optionsObject } from '../../checks.js';
import type { AttendOptions, JoinedPasses } from './types.js';

const attendNames = optionNames<AttendOptions>({ samples: true, reduce: true });
const joinedNames = optionNames<JoinedPasses>({ before: true, after: true, part: true });

/** A rank's state before a pass: out of data (before or since now), or making a pass without or with a reduction. */
const states = ['away', 'left', 'kept', 'pass'] as const;
type State = (typeof states)[number];

interface Round {
  /** Number of ranks in the pass. */
  readonly active: number;
  /** Their samples. */
  readonly samples: number;
  readonly reduces: boolean;
  /** The highest rank that has just joined; below 0 for none. */
  readonly lastLeft: number;
}

export class Attendance {
  readonly #comm: Communicator;
  readonly #averages: boolean;
  readonly #calls: { timeoutMs?: number };

  constructor(comm: Communicator, averages: boolean, timeoutMs: number) {
    this.#comm = comm;
    this.#averages = averages;
    this.#calls = timeoutMs < 0 ? {} : { timeoutMs };
  }

  /** The factor of this rank's next gradients. */
  async attend(options: AttendOptions | undefined): Promise<number> {
    const { samples, reduce = true } = optionsObject(options, attendNames, 'attend');
    if (
      samples !== undefined &&
      !(typeof samples === 'number' && samples >= 0 && samples < Infinity)
    ) {
      throw argumentError('ERR_OUT_OF_RANGE', 'samples', 'a number of at least 0', samples);
    }
    if (samples !== undefined && !this.#averages) {
      throw ruleError('ERR_INVALID_ARG_VALUE', "samples cannot be combined with op 'sum'");
    }
    const own = samples ?? 1;
    const { samples: total } = await this.#meet(reduce ? 'pass' : 'kept', own);
    if (!this.#averages) return 1;
    return total === 0 ? 0 : (own * this.#comm.size) / total;
  }

  /** Makes `pass` with the others until all ranks have joined. */
  async join(options: JoinedPasses | undefined, pass: () => Promise<unknown>): Promise<number> {
    const { before, after } = joinedPasses(options);
    for (let state: State = 'left'; ; state = 'away') {
      const { active, reduces, lastLeft } = await this.#meet(state, 0);
      if (active === 0) return lastLeft;
      if (!reduces) continue;
      await this.#told(before);
      await pass();
      await this.#told(after);
    }
  }

  /** Reports an error of this rank to the others, which already wait for it. */
  async #told(ask: (() => unknown) | undefined): Promise<void> {
    try {
      await ask?.();
    } catch (cause) {
      this.#comm.abort(`join() of rank ${this.#comm.rank} failed: ${String(cause)}`);
      throw cause;
    }
  }

  async #meet(state: State, samples: number): Promise<Round> {
    const own = Float64Array.of(states.indexOf(state), samples);
    const said = await this.#comm.allGather(own, this.#calls);
    const all = Array.from({ length: this.#comm.size }, (_, rank) => ({
      state: states[said[2 * rank]!],
      samples: said[2 * rank + 1]!,
    }));
    const active = all.filter((one) => one.state === 'pass' || one.state === 'kept');
    return {
      active: active.length,
      samples: active.reduce((sum, one) => sum + one.samples, 0),
      reduces: all.some((one) => one.state === 'pass'),
      lastLeft: all.findLastIndex((one) => one.state === 'left'),
    };
  }
}

export function joinedPasses(options: JoinedPasses | undefined): JoinedPasses {
  const given = optionsObject(options, joinedNames, 'join');
  if (given.before !== undefined) aFunction(given.before, 'before');
  if (given.after !== undefined) aFunction(given.after, 'after');
  return given;
}
