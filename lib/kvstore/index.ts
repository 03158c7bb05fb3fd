export { KVStore } from './kvstore.js';
export type {
  GradientCompression,
  KVStoreOptions,
  MergeName,
  SaveStatesOptions,
} from './store-options.js';
export type { DeviceArrays } from './arrays.js';
export type { ArraysFor, Keys, StoreCallOptions } from './calls.js';
export type { DeviceList } from './devices.js';
export type { InitOptions, InitValues } from './init.js';
export type { Key } from './keys.js';
export type { RegisteredStores, StoreFactory } from './registry.js';
export type { StoreReport } from './report.js';
export type { ServerReport, ShardPlace, WorkerReport } from '../native/dist.js';
export { RowSparse } from './row-sparse.js';
export type { RowSparseParts } from './row-sparse.js';
export type { PullOptions, PullTargets, PushValues } from './sparse-calls.js';
export type { NestedRowIds, RowIds } from './rows.js';
export { serveJob } from './serve.js';
export type { ServeOptions } from './serve.js';
export { isStoreType, storeKinds } from './types.js';
export type { StoreKind, StoreTypeName } from './types.js';
export type { ServerUpdater, Updater } from './updater.js';
