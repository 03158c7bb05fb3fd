// Each collective by one rule, in plain arithmetic on small integers, and a call of it on any kind of arrays.
import { reduceOps, type ReduceOp } from '../../lib/communicator/calls/reduce-op.js';
import type { DType } from '../../lib/tensor/dtype.js';
import { expect } from 'vitest';

import { arrayOf, signed, valuesOf } from './numbers.js';
import type { Method, Subject } from './subjects.js';

/** What is known of one call: what each rank brings, and what the first of them come to. */
export interface Facts {
  readonly n: number;
  readonly count: number;
  readonly root: number;
  readonly inputs: readonly (readonly number[])[];
  readonly reduced: (ranks: number) => readonly number[];
}

export interface Rule {
  /** Blocks that a rank brings, and those that it has in the end: one, or one for each rank. */
  readonly in: 'one' | 'all';
  readonly out: 'one' | 'all';
  readonly ops?: readonly ReduceOp[];
  /** The root alone brings, or gets. */
  readonly root?: 'in' | 'out';
  /** What a rank has in the end; undefined where it is what an operation begins with. */
  readonly result: (facts: Facts, rank: number) => readonly number[] | undefined;
}

const block = (values: readonly number[], rank: number, count: number) =>
  values.slice(rank * count, (rank + 1) * count);
const scanOps = reduceOps.filter((op) => op !== 'avg');

export const rules: Readonly<Record<Method, Rule>> = {
  allReduce: { in: 'one', out: 'one', ops: reduceOps, result: ({ n, reduced }) => reduced(n) },
  reduce: {
    in: 'one',
    out: 'one',
    ops: reduceOps,
    root: 'out',
    result: ({ n, reduced }) => reduced(n),
  },
  broadcast: { in: 'one', out: 'one', root: 'in', result: ({ inputs, root }) => inputs[root] },
  allGather: { in: 'one', out: 'all', result: ({ inputs }) => inputs.flat() },
  reduceScatter: {
    in: 'all',
    out: 'one',
    ops: reduceOps,
    result: ({ n, count, reduced }, rank) => block(reduced(n), rank, count),
  },
  allToAll: {
    in: 'all',
    out: 'all',
    result: ({ count, inputs }, rank) => inputs.flatMap((from) => block(from, rank, count)),
  },
  gather: { in: 'one', out: 'all', root: 'out', result: ({ inputs }) => inputs.flat() },
  scatter: {
    in: 'all',
    out: 'one',
    root: 'in',
    result: ({ count, inputs, root }, rank) => block(inputs[root]!, rank, count),
  },
  scan: { in: 'one', out: 'one', ops: scanOps, result: ({ reduced }, rank) => reduced(rank + 1) },
  exscan: {
    in: 'one',
    out: 'one',
    ops: scanOps,
    result: ({ reduced }, rank) => (rank === 0 ? undefined : reduced(rank)),
  },
};
export const methods = Object.keys(rules) as readonly Method[];

/** Inputs that differ by rank and index and whose sums, products and averages over `ranks` are exact in every dtype. */
export function input(
  dtype: DType,
  op: ReduceOp,
  rank: number,
  ranks: number,
  length: number,
): number[] {
  const offset = signed.includes(dtype) ? 3 : 0;
  return Array.from({ length }, (_, i) => {
    if (op === 'prod') return ((rank + i) % 2) + 1;
    const value = ((rank * 3 + i) % 7) - offset;
    return op === 'avg' ? value * ranks : value;
  });
}

const combined: Readonly<Record<ReduceOp, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  avg: (a, b) => a + b,
  prod: (a, b) => a * b,
  min: Math.min,
  max: Math.max,
};

/** Everybody's values combined, element by element. */
export const reduced = (op: ReduceOp, inputs: readonly (readonly number[])[]): number[] =>
  (inputs[0] ?? []).map((_, i) => {
    let all = inputs[0]![i]!;
    for (let rank = 1; rank < inputs.length; ++rank) all = combined[op](all, inputs[rank]![i]!);
    return op === 'avg' ? all / inputs.length : all;
  });

/** How arrays of one kind are made and read. */
export interface Kind<A> {
  readonly make: (dtype: DType, rank: number, values: readonly number[]) => A | Promise<A>;
  /** Fails unless the array holds these values; of undefined, what the operation begins with. */
  readonly check: (
    array: A,
    wanted: readonly number[] | undefined,
    of: { readonly dtype: DType; readonly op: ReduceOp; readonly length: number },
  ) => void | Promise<void>;
  /** A part of the same memory, where a call may take one for its output or input. */
  readonly part?: (array: A, begin: number, end: number) => A;
}

export interface OneCall {
  readonly method: Method;
  readonly dtype: DType;
  readonly op: ReduceOp;
  readonly n: number;
  readonly root: number;
  readonly count: number;
  readonly more?: Readonly<Record<string, unknown>>;
}

/** One call with outputs of its own, one that makes them, and one in place, as far as there are such. */
export async function expectCall<A>(subject: Subject, kind: Kind<A>, call: OneCall): Promise<void> {
  const { method, dtype, op, n, root, count, more } = call;
  const rule = rules[method];
  const ranks = Array.from({ length: n }, (_, rank) => rank);
  const lengthOf = (blocks: Rule['in']) => (blocks === 'all' ? n * count : count);
  const length = lengthOf(rule.out);
  const inputs = ranks.map((rank) => input(dtype, op, rank, n, lengthOf(rule.in)));
  // What the type holds of them: integers wrap.
  const sums: number[][] = [];
  const facts = {
    n,
    count,
    root,
    inputs,
    reduced: (of: number) => {
      sums[of] ??= valuesOf(dtype, arrayOf(dtype, reduced(op, inputs.slice(0, of))));
      return sums[of];
    },
  };
  const wanted = ranks.map((rank) => rule.result(facts, rank));
  const options = {
    ...more,
    ...(rule.ops === undefined ? {} : { op }),
    ...(rule.root === undefined ? {} : { root }),
  };
  const made = (of: readonly (readonly number[])[]) =>
    Promise.all(of.map((values, rank) => kind.make(dtype, rank, values)));
  const brought = (datas: readonly A[]) =>
    method === 'scatter' ? datas.map((data, rank) => (rank === root ? data : null)) : datas;
  const gets = (rank: number) => rule.root !== 'out' || rank === root;
  // Asked first in plain words: there are very many.
  const same = (given: unknown, wanted: unknown) => {
    if (given !== wanted) expect(given).toBe(wanted);
  };
  const right = async (results: readonly unknown[], places?: readonly A[]) => {
    same(results.length, n);
    for (const [rank, result] of results.entries()) {
      if (!gets(rank)) same(result, undefined);
      else await kind.check(result as A, wanted[rank], { dtype, op, length });
      if (places !== undefined && gets(rank)) same(result, places[rank]);
    }
  };
  const unchanged = async (datas: readonly A[]) => {
    for (const [rank, data] of datas.entries()) {
      await kind.check(data, inputs[rank], { dtype, op, length });
    }
  };

  if (method !== 'broadcast') {
    const [datas, outs] = [await made(inputs), await made(ranks.map(() => Array(length).fill(0)))];
    await right(await subject.call({ method, datas: brought(datas), outs, options }), outs);
    await unchanged(datas);
  }
  const datas = await made(inputs);
  if (rule.in === 'one' && rule.out === 'one') {
    await right(await subject.call({ method, datas, options }), datas);
    for (const rank of ranks.filter((one) => !gets(one))) {
      await kind.check(datas[rank]!, inputs[rank], { dtype, op, length });
    }
    return;
  }
  if (method === 'scatter') return;
  await right(await subject.call({ method, datas, options }));
  await unchanged(datas);
  if (kind.part === undefined || rule.in === rule.out || rule.root !== undefined) return;
  const part = (one: A, rank: number) => kind.part!(one, rank * count, (rank + 1) * count);
  if (rule.in === 'all') {
    const outs = datas.map(part);
    await right(await subject.call({ method, datas, outs, options }), outs);
    return;
  }
  const filled = ranks.map((rank) =>
    Array.from({ length }, (_, i) =>
      Math.floor(i / count) === rank ? inputs[rank]![i % count]! : 0,
    ),
  );
  const outs = await made(filled);
  await right(await subject.call({ method, datas: outs.map(part), outs, options }), outs);
}
