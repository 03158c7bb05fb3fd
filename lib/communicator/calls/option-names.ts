// The option names of each call. The compiler keeps each list equal to the options' type.
import { nativeCollectives } from '../../collectives.js';
import type { NativeCollective, NativeOpName } from '../../collectives.js';
import { type KnownOptions, optionNames } from '../../checks.js';
import type {
  CountsOptions,
  ScatterCountsOptions,
  ShareOptions,
  SplitOptions,
} from './counted-types.js';
import type {
  AsyncOptions,
  CallOptions,
  GossipOptions,
  HierarchicalOptions,
  MachineTopologyOptions,
  NameOptions,
  NeighborGatherOptions,
  NeighborOptions,
  OpOptions,
  ReceiveOptions,
  RootOptions,
  SendOptions,
  TopologyOptions,
  WindowOptions,
} from './types.js';

/** The options of a call and of its blocking variant, which takes no signal. */
export interface NamesOfBoth {
  readonly awaited: KnownOptions;
  readonly blocking: KnownOptions;
}

const calls = { timeoutMs: true } as const;
const data = { ...calls, dtype: true } as const;
const toOut = { ...data, out: true } as const;

interface DTyped {
  dtype?: string;
}
interface Out {
  out?: unknown;
}

function both<O extends object>(names: Readonly<Record<keyof (O & CallOptions), true>>) {
  const awaited = { ...names, signal: true } as Record<keyof (O & AsyncOptions), true>;
  return {
    awaited: optionNames<O & AsyncOptions>(awaited),
    blocking: optionNames<O & CallOptions>(names),
  };
}

const named = { name: true } as const;

/**
 * The table tells a collective's options, with two exceptions: broadcast returns its data, scatter may make an array.
 */
function namesOf({ name, hasOp, hasRoot }: NativeCollective): NamesOfBoth {
  if (name === 'barrier') return both<NameOptions>({ ...calls, ...named });
  const names: Record<string, true> = { ...(name === 'broadcast' ? data : toOut), ...named };
  if (hasOp) Object.assign(names, { op: true, scale: true, postscale: true });
  if (hasRoot) names['root'] = true;
  if (name === 'scatter') names['count'] = true;
  return both<Record<string, unknown>>(names);
}

export const collectiveNames = Object.fromEntries(
  nativeCollectives.map((row) => [row.name, namesOf(row)]),
) as Readonly<Record<NativeOpName, NamesOfBoth>>;

export type CountedOp = 'allToAllV' | 'allGatherV' | 'gatherV' | 'scatterV' | 'reduceScatterV';

export const countedNames: Readonly<Record<CountedOp, NamesOfBoth>> = {
  allToAllV: both<SplitOptions<unknown> & DTyped & Out>({
    ...toOut,
    splits: true,
    receiveSplits: true,
  }),
  allGatherV: both<CountsOptions & DTyped & Out>({ ...toOut, counts: true }),
  gatherV: both<CountsOptions & RootOptions & DTyped & Out>({ ...toOut, counts: true, root: true }),
  scatterV: both<ScatterCountsOptions & DTyped & Out>({ ...toOut, counts: true, root: true }),
  reduceScatterV: both<ShareOptions & OpOptions & DTyped & Out>({
    ...toOut,
    counts: true,
    op: true,
  }),
};

const weights = { selfWeight: true, srcWeights: true, dstWeights: true } as const;

export const neighborNames = {
  neighborAllReduce: both<NeighborOptions & DTyped & Out>({
    ...toOut,
    ...weights,
    checkTopology: true,
  }),
  neighborAllGather: both<NeighborGatherOptions & DTyped & Out>({
    ...toOut,
    srcRanks: true,
    dstRanks: true,
    srcCounts: true,
  }),
  pairGossip: both<GossipOptions & DTyped & Out>({
    ...toOut,
    peer: true,
    selfWeight: true,
    pairWeight: true,
  }),
  hierarchicalNeighborAllReduce: both<HierarchicalOptions & DTyped & Out>({
    ...toOut,
    selfWeight: true,
    srcMachineWeights: true,
    dstMachineWeights: true,
  }),
};

export const messageNames = {
  send: both<SendOptions & DTyped>({ ...data, to: true, tag: true }),
  receive: both<ReceiveOptions & DTyped>({ ...data, from: true, tag: true }),
};

export const topologyNames = optionNames<TopologyOptions>({ weighted: true });
export const machineTopologyNames = optionNames<MachineTopologyOptions>({
  weighted: true,
  ranksPerNode: true,
  timeoutMs: true,
});
export const windowNames = optionNames<WindowOptions & DTyped>({
  name: true,
  zeroInit: true,
  associatedP: true,
  timeoutMs: true,
  dtype: true,
});
export const callNames = optionNames<CallOptions>(calls);
export const asyncCallNames = both<CallOptions>(calls).awaited;
