// BlueFog's chart of ResNet-50, read from its bars: images per second, about +-110 at batch 64 and +-80 at batch 32.
import type { PublishedCurves } from './types.js';

/** The value for one GPU is the chart's ideal line divided by its GPUs. */
export const bluefog: PublishedCurves = {
  source: 'Bluefog-Lib/bluefog at 9ee376a (March 2023), docs/performance.rst, charts',
  machine: '16 p3.16xlarge of 8 V100, 25 Gb/s',
  workersPerHost: 8,
  series: [
    {
      name: 'Horovod, batch 64',
      batchSize: 64,
      throughput: { 1: 350.6, 4: 1409, 8: 2710, 16: 5203, 32: 9756, 64: 17344, 128: 30135 },
    },
    {
      name: 'hierarchical neighbor averaging, batch 64',
      batchSize: 64,
      throughput: { 1: 350.6, 4: 1409, 8: 2710, 16: 5095, 32: 10190, 64: 20271, 128: 40650 },
    },
    {
      name: 'one-peer neighbor averaging, batch 64',
      batchSize: 64,
      throughput: { 1: 350.6, 4: 1409, 8: 2710, 16: 5420, 32: 10732, 64: 21246, 128: 43035 },
    },
    {
      name: 'Horovod, batch 32',
      batchSize: 32,
      throughput: { 1: 314.8, 4: 1194, 8: 2467, 16: 3820, 32: 5411, 64: 10345, 128: 14722 },
    },
    {
      name: 'hierarchical neighbor averaging, batch 32',
      batchSize: 32,
      throughput: { 1: 314.8, 4: 1194, 8: 2308, 16: 3501, 32: 6923, 64: 14006, 128: 27933 },
    },
    {
      name: 'one-peer neighbor averaging, batch 32',
      batchSize: 32,
      throughput: { 1: 314.8, 4: 1194, 8: 2308, 16: 4536, 32: 8754, 64: 16553, 128: 32866 },
    },
  ],
};
