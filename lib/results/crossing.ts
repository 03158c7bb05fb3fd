// What must pass between processes of one host that cannot address each other's arrays.
import type { Collective } from './bandwidth.js';

/** Of one rank, in bytes: what it writes for others to read, and what it reads of what others wrote. */
export interface CrossingPart {
  readonly put: number;
  readonly get: number;
}

/** The least that any implementation passes from process to process. */
export interface Crossing {
  /** A part for each rank, in their order; a root is rank 0. */
  readonly parts: readonly CrossingPart[];
  readonly formula: string;
}

interface Rule {
  readonly text: string;
  /** In units of S; `root` where rank 0's differs from the others'. */
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

// What a rank brings is written once, however many read it, and read where it is needed or summed. A sum costs n - 1
// readings of each element, whoever makes them; of an all-reduce each rank makes 1/n of them, and then reads the rest.
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
  // Of the first and last rank one of the two is missing; rank 0 stands for both where there is nobody between them.
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
 * What a collective passes between n processes with arrays of their own.
 *
 * @param bytes S, as `collectiveVolume` counts it
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
