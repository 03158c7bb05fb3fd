// The options of copies between host memory and GPUs, for `gradlink p2p` and its run.
import type { RunOptions } from '../common-run.js';
import { mebibyte } from '../../results/units.js';
import { choice, flag, gpuList, inUnits, list, milliseconds, whole } from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';
import { p2pCases } from './cases.js';
import { p2pMatrixCases } from './matrix.js';

const count = whole({ min: 1, max: 1e6 });
/** All cases, including the matrix's. */
export const p2pRecords = [...p2pCases, ...p2pMatrixCases];

export const p2pTable = optionTable({
  /** Names from `gradlink p2p --list`, or pairs of `--matrix`; default all of the former. */
  cases: { kind: list(choice(p2pRecords.map(({ name }) => name))) },
  /** Per copy; default 512 MiB. */
  bytes: {
    flag: '-b, --buffer-size <MiB>',
    help: 'size of one copy',
    kind: inUnits(whole({ min: 1 }), mebibyte, whole({ min: 1, max: 2 ** 20 })),
    default: 512 * mebibyte,
  },
  /** Per figure; default 3. */
  samples: {
    flag: '-i, --samples <count>',
    help: 'samples of each figure',
    kind: count,
    default: 3,
  },
  /** Copies per sample; default 16. */
  loops: {
    flag: '--loop-count <count>',
    help: 'copies that one sample times together',
    kind: count,
    default: 16,
  },
  /** Whether figures use the mean of the samples instead of the median. */
  mean: {
    flag: '-m, --mean',
    help: 'report the mean of the samples instead of the median',
    kind: flag,
    default: false,
  },
  /** Whether copied data is compared; default true. */
  verify: {
    flag: '-s, --skip-verification',
    help: 'do not compare what was copied',
    kind: flag,
    default: true,
  },
  /** Whether host memory is allocated near its GPU; default true. */
  affinity: {
    flag: '-d, --disable-affinity',
    help: 'allocate host memory wherever the process runs',
    kind: flag,
    default: true,
  },
  /** Default all. */
  gpus: {
    flag: '--gpus <list>',
    help: 'only these GPUs, such as 0,2 (default: all)',
    kind: gpuList,
  },
  /** Per sample; default 120,000. */
  timeoutMs: {
    flag: '--timeout <seconds>',
    help: 'a sample that takes longer fails',
    kind: inUnits(milliseconds, 1000, whole({ min: 1, max: 86_400 })),
    default: 120_000,
  },
});

/** The cases to measure, and the GPUs. */
export interface P2pOptions extends RunOptions, OptionsOf<typeof p2pTable> {}
