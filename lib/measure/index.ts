/**
 * Measuring from a program: the benchmarks behind the commands, each a function that returns a {@link Report}; a
 * report's schema, statistics and formulas; comparisons and predictions.
 *
 * @packageDocumentation
 */
import { publish } from '../caller.js';
import * as entry from './index.js';

export type { CollectivesOptions } from './collectives/collectives-options.js';
export { run as runCollectives } from './collectives/collectives-run.js';
export { averages, type Average, type Sweep } from './collectives/sweep.js';
export type { NcclChoice, NcclChoices } from './collectives/nccl-choices.js';
export type { DdpOptions, SyntheticCompute } from './ddp/ddp-options.js';
export { run as runDdp } from './ddp/ddp-run.js';
export type { ModelWorkloadOptions } from './ddp/step.js';
export type { NeighborsOptions } from './neighbors/neighbors-options.js';
export { run as runNeighbors } from './neighbors/neighbors-run.js';
export {
  graphNames,
  neighborCollectives,
  type GraphName,
  type NeighborCollective,
} from './neighbors/plan.js';
export { neighborDtypes, type NeighborDType, type NeighborTiming } from './neighbors/sweep.js';
export type { P2pOptions } from './p2p/p2p-options.js';
export { run as runP2p } from './p2p/p2p-run.js';
export type { P2pTimingOptions } from './p2p/timing.js';
export { pairKinds, type PairKind, type PairsOptions } from './pairs/pairs-options.js';
export { run as runPairs } from './pairs/pairs-run.js';
export type { Asked, RankInfo, RunEvents, RunOptions } from './common-run.js';
export { gradientTypes, type GradientType } from './store/gradients.js';
export type { Compression } from './store/reference.js';
export {
  storeModes,
  type BatchOptions,
  type StoreMode,
  type StoreOptions,
} from './store/store-options.js';
export { run as runStores, type StoreEvents } from './store/store-run.js';
export { run as runTrain, type TrainEvents } from './train/train-run.js';
export {
  distOptimizers,
  trainOptimizers,
  type DistOptimizer,
  type TrainOptimizer,
  type TrainOptions,
} from './train/train-options.js';
export type { StepParts, TrainConfig, TrainResult } from './train/types.js';
export type { NativeGpuTimingOptions as GpuTiming } from '../native/measure.js';
export type { UtilisationSummary } from './machine/utilisation.js';
export { environmentOf } from './machine/environment.js';
export {
  bandwidth,
  collectiveVolume,
  collectives,
  mxnetBandwidth,
  perSecond,
  storeVolume,
  type Collective,
  type MemoryAccess,
  type Placement,
  type StoreCall,
  type Volume,
} from '../results/bandwidth.js';
export {
  completeCase,
  errorCheck,
  exactCheck,
  failedCase,
  unchecked,
  waivedCase,
  type CaseInput,
  type ExpectedTime,
} from '../results/case.js';
export { describeEnvironment, knownVariables } from '../results/environment.js';
export type {
  HostFigures,
  HostsComparison,
  LinkFigures,
  SlowestHost,
  SlowestLink,
} from '../results/hosts.js';
export * from '../results/result.js';
export { parseReport, readReport } from '../results/read-report.js';
export { reportSchema } from '../results/schema.js';
export { describe, medianInterval, percentile } from '../results/statistics.js';
export type * from '../results/store-traffic.js';
export { judge, type VerdictContext } from '../results/verdict.js';
export * from '../compare/index.js';
export * from '../predict/index.js';

publish(entry);
