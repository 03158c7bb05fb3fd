export { SyncBatchNormalization } from './layer.js';
export type { SyncBatchNormalizationArgs } from './layer.js';
export { convertSyncBatchNormalization, useSyncBatchNormalization } from './models.js';
