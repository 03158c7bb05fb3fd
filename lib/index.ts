/**
 * gradlink: typed collectives and an MXNet-style key-value store. Other entries: `gradlink/topology` for graphs of
 * ranks, `gradlink/decentralised` for methods that average over them, `gradlink/measure`, `gradlink/models` for shapes
 * of networks, and `gradlink/tfjs` for training with TensorFlow.js.
 *
 * @packageDocumentation
 */
import { publish } from './caller.js';
import * as entry from './index.js';

export { GradlinkError } from './errors.js';
export type { ArgumentError, ArgumentErrorCode, ErrorCode, ErrorDetails } from './errors.js';
export { nativePath } from './native/load.js';
export { deviceDtypes, dtypes } from './tensor/dtype.js';
export { fromFloat8, toFloat8 } from './tensor/float8.js';
export type { DTypeOf } from './tensor/any-array.js';
export type {
  AnyDType,
  ArrayOf,
  DeviceDType,
  DType,
  Float16ArrayLike,
  Float8DType,
  HalfDType,
  NumericArray,
  StorageArray,
} from './tensor/dtype.js';
export * from './gpu/index.js';
export { Communicator, LocalGroup } from './communicator/communicator.js';
export { WorldGroup } from './communicator/world/world-group.js';
export type { GroupHierarchy } from './communicator/world/group-nodes.js';
export type { GroupMessages } from './communicator/world/group-messages.js';
export type { GroupNeighbors } from './communicator/world/group-neighbors.js';
export type {
  GroupHierarchicalOptions,
  GroupMessage,
  GroupMessagesOf,
  GroupGatherOptions,
  GroupGossipOptions,
  GroupLists,
  GroupNeighborOptions,
  GroupPair,
  GroupWeights,
  GroupWindowOptions,
  MessageEnds,
} from './communicator/world/group-types.js';
export type { CommunicatorBase } from './communicator/base.js';
export type {
  GpuGroupWorldOptions,
  GpuWorldOptions,
  HostWorldOptions,
  JoinOptions,
  NcclOptions,
  WorldOptions,
} from './communicator/joining/joining.js';
export type { Messages } from './communicator/messages.js';
export type { Collectives } from './communicator/collectives/collectives.js';
export type { CountedCollectives } from './communicator/collectives/counted.js';
export type {
  Counted,
  CountedResult,
  Counts,
  CountsOf,
  CountsOptions,
  ScatterCountsOptions,
  ScatterDType,
  ScatterOut,
  ShareOptions,
  SplitOptions,
} from './communicator/calls/counted-types.js';
export { allGatherObject, broadcastObject } from './communicator/composed/objects.js';
export type { BroadcastObjectOptions, ObjectOptions } from './communicator/composed/objects.js';
export { allReduceMany } from './communicator/composed/grouped.js';
export type { ManyOptions } from './communicator/composed/grouped.js';
export { sparseAllReduce } from './communicator/composed/sparse.js';
export type { SparseOptions, SparseRows } from './communicator/composed/sparse.js';
export { NeighborWindow } from './communicator/windows/window.js';
export type {
  WindowGetOptions,
  WindowMutexOptions,
  WindowPutOptions,
  WindowUpdateOptions,
} from './communicator/windows/window.js';
export type { HierarchicalOperations } from './communicator/neighbors/hierarchical.js';
export type { NeighborOperations } from './communicator/neighbors/neighbors.js';
export { reduceOps } from './communicator/calls/reduce-op.js';
export type { ReduceOp } from './communicator/calls/reduce-op.js';
export type {
  ArrayIn,
  ArrayOfRank,
  AsyncOptions,
  CallOptions,
  DTypeOption,
  GossipOptions,
  HierarchicalOptions,
  FusionOptions,
  MachineTopologyOptions,
  Memory,
  NamedAsyncOptions,
  NamedCallOptions,
  NameOptions,
  NeighborGatherOptions,
  NeighborOptions,
  NewArray,
  NewArrays,
  NothingGiven,
  OpOptions,
  Options,
  OutOptions,
  RankData,
  Received,
  ReceiveOptions,
  ReduceOptions,
  RequiredOptions,
  RootOptions,
  SameArrays,
  ScaleOptions,
  ScatterCount,
  SendOptions,
  TopologyOptions,
  WindowOptions,
} from './communicator/calls/types.js';
export * from './optimizers/index.js';
export * from './kvstore/index.js';
export type { Node, NodeWeights, Rank, RankWeights } from './topology/rank.js';

publish(entry);
