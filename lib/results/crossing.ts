// The data that must pass between processes of one host that cannot access each other's arrays.
import type { Collective } from './bandwidth.js';

/** A rank's bytes: writes for others to read, and reads of others' writes. */
export interface CrossingPart {
  readonly put: number;
  readonly get: number;
}

/** The minimum that any implementation passes between processes. */
export interface Crossing {
  /** A part for each rank in order; a root is rank 0. */
  readonly parts: readonly CrossingPart[];
  readonly formula: string;
}

interface Rule {
  readonly text: string;
  /** In units of S; `root` if rank 0's differs. */
  readonly part: (n: number) => CrossingPart;
  readonly root?: (n: number) => CrossingPart;
}

const others = (n: number): number => (n - 1) / n;
const exchange: Rule = {
  text: 'a rank writes S (n-1)/n for others + reads S (n-1)/n of theirs',
  part: (n) => ({ put: others(n), get: others(n) }),
};
const whole: Rule = {
  text: 'a rank writes S for others + reads S of theirs',
  part: () => ({ put: 1, get: 1 }),
};

// A rank's input is written once for any number of readers. A sum needs n - 1 reads of each element, by any rank; in an
// all-reduce each rank sums 1/n and then reads the rest.
const rules: Readonly<Record<Collective, Rule>> = {
  all_reduce: {
    text: 'a rank writes S for others + reads S 2(n-1)/n of theirs',
    part: (n) => ({ put: 1, get: 2 * others(n) }),
  },
  all_gather: {
    text: 'a rank writes S/n for others + reads S (n-1)/n of theirs',
    part: (n) => ({ put: 1 / n, get: others(n) }),
  },
  reduce_scatter: exchange,
  alltoall: exchange,
  gather: {
    text: 'a rank writes S/n for the root, which reads S (n-1)/n',
    part: (n) => ({ put: 1 / n, get: 0 }),
    root: (n) => ({ put: 0, get: others(n) }),
  },
  scatter: {
    text: 'the root writes S (n-1)/n for others, which read S/n',
    part: (n) => ({ put: 0, get: 1 / n }),
    root: (n) => ({ put: others(n), get: 0 }),
  },
  broadcast: {
    text: 'the root writes S for others, which read S',
    part: () => ({ put: 0, get: 1 }),
    root: () => ({ put: 1, get: 0 }),
  },
  reduce: {
    text: 'a rank writes S for others, the root reads S',
    part: () => ({ put: 1, get: 0 }),
    root: () => ({ put: 0, get: 1 }),
  },
  // The first and the last rank lack one of the two; rank 0 stands for both if there is nobody between them.
  scan: {
    text: 'a rank writes S for the next + reads S of what is before it',
    part: (n) => ({ put: n > 2 ? 1 : 0, get: 1 }),
    root: () => ({ put: 1, get: 0 }),
  },
  exscan: {
    text: 'a rank writes S for the next + reads S of what is before it',
    part: (n) => ({ put: n > 2 ? 1 : 0, get: 1 }),
    root: () => ({ put: 1, get: 0 }),
  },
  sendrecv: whole,
  alltoallv: whole,
  hypercube: {
    text: 'a rank writes S/(n-1) for others + reads S of theirs',
    part: (n) => ({ put: 1 / (n - 1), get: 1 }),
  },
};

/**
 * The data that a collective passes between n processes with separate arrays.
 *
 * @param bytes S of `collectiveVolume`
 */
export function collectiveCrossing(collective: Collective, bytes: number, ranks: number): Crossing {
  const { text, part, root = part } = rules[collective];
  const scaled = ({ put, get }: CrossingPart) => ({ put: put * bytes, get: get * bytes });
  const parts =
    ranks > 1
      ? Array.from({ length: ranks }, (_, rank) => scaled((rank === 0 ? root : part)(ranks)))
      : [];
  return { parts, formula: text };
}
