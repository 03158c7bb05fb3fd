// The words of collective calls that all floors share: the one table of the collectives, as native/core/collective.h has
// it, and the reduce operations.

/** Blocks of `count` elements that a rank brings or gets: none, one, or one for each rank. */
export type NativeBlocks = 'none' | 'one' | 'each' | 'oneAtRoot' | 'eachAtRoot';

export interface NativeCollective {
  readonly name: string;
  readonly hasOp: boolean;
  readonly hasRoot: boolean;
  readonly in: NativeBlocks;
  readonly out: NativeBlocks;
}

/**
 * The collectives; a row's place is its number, the low byte of the `call` argument. It is the addon's table
 * (native/core/collective.h) with its names as types: test/native/surface.test.ts holds the two equal.
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

/** What brings more than arrays of one length. */
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
 * What timeCollective knows: collectives that move data, the barrier, and what is made of messages: a ring, parts of
 * different lengths, and an all-gather by doubling.
 */
export type NativeTimedName = NativeOpName | 'sendReceive' | 'allToAllV' | 'hypercube';

/**
 * How values are combined. Sums and products of integers wrap; `avg` of integers truncates towards zero and, up to 32 bits,
 * does not wrap; `min` and `max` give NaN where any value is NaN. float16 and bfloat16 are combined in float32 and rounded once.
 * On GPUs as NCCL does it: averages of integers wrap, and halves are rounded at each of its steps.
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
