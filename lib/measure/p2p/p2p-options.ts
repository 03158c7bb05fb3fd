// The options of copies between host memory and GPUs: `gradlink p2p` and its run have them from here.
import type { RunOptions } from '../common-run.js';
import { mebibyte } from '../../results/units.js';
import { choice, flag, gpuList, inUnits, list, milliseconds, whole } from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';
import { p2pCases } from './cases.js';
import { p2pMatrixCases } from './matrix.js';

const count = whole({ min: 1, max: 1e6 });
/** All that there are, those of the matrix too. */
export const p2pRecords = [...p2pCases, ...p2pMatrixCases];

export const p2pTable = optionTable({
  /** Names of `gradlink p2p --list`, or of the pairs of `--matrix`; default all of the former. */
  cases: { kind: list(choice(p2pRecords.map(({ name }) => name))) },
  /** Of one copy; default 512 MiB. */
  bytes: {
    flag: '-b, --buffer-size <MiB>',
    help: 'size of one copy',
    kind: inUnits(whole({ min: 1 }), mebibyte, whole({ min: 1, max: 2 ** 20 })),
    default: 512 * mebibyte,
  },
  /** Of each figure; default 3. */
  samples: {
    flag: '-i, --samples <count>',
    help: 'samples of each figure',
    kind: count,
    default: 3,
  },
  /** Copies that a sample times together; default 16. */
  loops: {
    flag: '--loop-count <count>',
    help: 'copies that one sample times together',
    kind: count,
    default: 16,
  },
  /** Figures at the mean of the samples instead of the median. */
  mean: {
    flag: '-m, --mean',
    help: 'report the mean of the samples instead of the median',
    kind: flag,
    default: false,
  },
  /** Whether what was copied is compared; default true. */
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
  /** Of one sample; default 120,000. */
  timeoutMs: {
    flag: '--timeout <seconds>',
    help: 'a sample that takes longer fails',
    kind: inUnits(milliseconds, 1000, whole({ min: 1, max: 86_400 })),
    default: 120_000,
  },
});

/** Which cases to measure on which GPUs, and how. */
export interface P2pOptions extends RunOptions, OptionsOf<typeof p2pTable> {}
