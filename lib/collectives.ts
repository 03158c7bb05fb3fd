// The names of collective calls and reduce operations for all layers: the table of the collectives, as in
// native/core/collective.h.

/** Blocks of `count` elements of a rank's input or output: none, one, or one for each rank. */
export type NativeBlocks = 'none' | 'one' | 'each' | 'oneAtRoot' | 'eachAtRoot';

export interface NativeCollective {
  readonly name: string;
  readonly hasOp: boolean;
  readonly hasRoot: boolean;
  readonly in: NativeBlocks;
  readonly out: NativeBlocks;
}

/**
 * The collectives; a row's index is its number, the low byte of the `call` argument. Mirrors native/core/collective.h
 * with the names as types; test/native/surface.test.ts keeps the two equal.
 */
export const nativeCollectives = [
  { name: 'allReduce', hasOp: true, hasRoot: false, in: 'one', out: 'one' },
  { name: 'reduce', hasOp: true, hasRoot: true, in: 'one', out: 'oneAtRoot' },
  { name: 'broadcast', hasOp: false, hasRoot: true, in: 'oneAtRoot', out: 'one' },
  { name: 'allGather', hasOp: false, hasRoot: false, in: 'one', out: 'each' },
  { name: 'reduceScatter', hasOp: true, hasRoot: false, in: 'each', out: 'one' },
  { name: 'allToAll', hasOp: false, hasRoot: false, in: 'each', out: 'each' },
  { name: 'gather', hasOp: false, hasRoot: true, in: 'one', out: 'eachAtRoot' },
  { name: 'scatter', hasOp: false, hasRoot: true, in: 'eachAtRoot', out: 'one' },
  { name: 'scan', hasOp: true, hasRoot: false, in: 'one', out: 'one' },
  { name: 'exscan', hasOp: true, hasRoot: false, in: 'one', out: 'one' },
  { name: 'barrier', hasOp: false, hasRoot: false, in: 'none', out: 'none' },
] as const satisfies readonly NativeCollective[];
export type NativeOpName = (typeof nativeCollectives)[number]['name'];

/** Calls beyond arrays of equal length. */
const otherCalls = [
  'neighborAllReduce',
  'split',
  'allToAllV',
  'allGatherV',
  'gatherV',
  'scatterV',
  'reduceScatterV',
  'neighborAllGather',
  'pairGossip',
  'send',
  'receive',
  'sendReceive',
] as const;
export type NativeCallName = NativeOpName | (typeof otherCalls)[number];

/** All calls of a communicator, in the order of their numbers. */
export const nativeCalls: readonly NativeCallName[] = [
  ...nativeCollectives.map(({ name }) => name),
  ...otherCalls,
];

/**
 * The calls that timeCollective can time: collectives that move data, the barrier, and calls built from messages: a
 * ring, all-to-all with counts, and an all-gather by doubling.
 */
export type NativeTimedName = NativeOpName | 'sendReceive' | 'allToAllV' | 'hypercube';

/**
 * How values are combined. Integer sums and products wrap. `avg` of integers truncates towards zero and does not wrap
 * up to 32 bits. `min` and `max` give NaN if any value is NaN. float16 and bfloat16 are combined in float32 and rounded
 * once. On GPUs NCCL's rules apply: averages of integers wrap, and halves are rounded at each step.
 */
export type ReduceOp = 'sum' | 'prod' | 'min' | 'max' | 'avg';

/** In the order of native/core/kernels/reduce_op.h. */
export const reduceOps = [
  'sum',
  'prod',
  'min',
  'max',
  'avg',
] as const satisfies readonly ReduceOp[];
