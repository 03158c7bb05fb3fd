// The options of the store benchmark, for `gradlink measure` and its run.
import type { RunOptions } from '../common-run.js';
import { anObject, having, oneOf, oneOfWords, aPositive } from '../../checks.js';
import { GradlinkError } from '../../errors.js';
import { parseDevices, type DeviceList } from '../../kvstore/devices.js';
import { mergeNames } from '../../kvstore/store-options.js';
import { parseStoreType, storeKinds, type StoreTypeName } from '../../kvstore/types.js';
import type { Network } from '../../models/index.js';
import { optimizerNames } from '../../optimizers/index.js';
import {
  choice,
  flag,
  list,
  ofPrograms,
  whole,
  WrongValue,
  zeroOrOne,
  type Kind,
} from '../../options/kinds.js';
import { optionTable, type Filled, type OptionsOf } from '../../options/table.js';
import { gradientTypes } from './gradients.js';
import type { Compression } from './reference.js';

/** `push-pull`: all pushes, then all pulls, as in the original; `pushpull`: one call for both. */
export const storeModes = ['push-pull', 'pushpull'] as const;
/** One of {@link storeModes}. */
export type StoreMode = (typeof storeModes)[number];

/** A store type by any of its names. */
export const storeType: Kind<StoreTypeName> = {
  parse(text) {
    try {
      return parseStoreType(text).name;
    } catch (error) {
      if (!(error instanceof GradlinkError)) throw error;
      throw new WrongValue(`E${error.message.slice(1)}.`);
    }
  },
  check: parseStoreType,
  choices: storeKinds,
};

/** The original's Python name. */
const noOptimizer = 'None';
const typedOptimizer = choice([noOptimizer, ...optimizerNames]);
const optimizer: Kind<string | null> = {
  parse(text) {
    const name = typedOptimizer.parse(text);
    return name === noOptimizer ? null : name;
  },
  check(value, name) {
    if (value !== null) oneOf(value, name, optimizerNames);
  },
  show: (name) => name ?? noOptimizer,
  choices: [noOptimizer, ...optimizerNames],
};

const aCompression = having({ type: oneOfWords(['2bit', '1bit']), threshold: aPositive });
const compression: Kind<Compression | null> = {
  ...ofPrograms((value, name) => {
    if (value !== null) aCompression(value, name);
  }),
  show: (given) => given?.type ?? null,
};

const devices = ofPrograms<readonly string[]>((value) => {
  parseDevices(value as DeviceList);
});

const network: Kind<Network> = { ...ofPrograms(anObject), show: ({ name }) => name };

const count = whole({ min: 1, max: 1e6 });

export const storeTable = optionTable({
  /** Types to measure one after another; default `device`. */
  kvStores: { kind: list(storeType), default: ['device'] },
  /** `cpu:0` or `gpu:0`; a GPU may be repeated. Default four CPU devices. */
  devices: { kind: devices, default: ['cpu:0', 'cpu:1', 'cpu:2', 'cpu:3'] },
  /** The network whose arrays are moved; default resnet with 152 layers. */
  network: { kind: network },
  /** Of float32 gradients; default null: none. */
  compression: { kind: compression, default: null },
  /** For types that merge on GPUs, as for `KVStore.create`; otherwise undefined. */
  merge: {
    flag: '--merge <how>',
    help: 'what merges on GPUs: nccl, peers (copies between GPUs), or, with the store device, auto: NCCL where it can start',
    kind: choice(mergeNames),
  },
  /** For type `device`: false prevents direct access between GPUs. */
  peer: {
    flag: '--no-peer',
    help: 'with the store device: GPUs exchange through the memory of the host, not directly',
    kind: flag,
  },
  /** For stores with servers, as for `KVStore.create`. */
  bigArrayBound: {
    flag: '--big-array-bound <count>',
    help: "with servers: arrays of at least this many elements are split over all servers (default: 1000000, or MXNet's MXNET_KVSTORE_BIGARRAY_BOUND)",
    kind: whole({ min: 1 }),
  },
  /** Timed batches; default 5. */
  batches: { flag: '--num-batches <count>', help: 'timed batches', kind: count, default: 5 },
  /** Batches per printed line, which shows their mean; default 1. */
  display: {
    flag: '--disp-batches <count>',
    help: 'batches that a line averages',
    kind: count,
    default: 1,
  },
  /** Whether every batch is compared with expected values; default true. */
  check: {
    flag: '--test-results <0|1>',
    help: 'compare every batch with the expected result; 0: do not',
    kind: zeroOrOne,
    default: true,
  },
  /** A name for createOptimizer; default null: pushes assign. */
  optimizer: {
    flag: '--optimizer <name>',
    help: 'optimizer of the store; None: pushes assign',
    kind: optimizer,
    default: null,
  },
  /** Default `push-pull`. */
  mode: {
    flag: '--mode <mode>',
    help: 'push-pull: all pushes, then all pulls; pushpull: one call for both',
    kind: choice(storeModes),
    default: 'push-pull',
  },
  /** Of the gradients; default `float32`. */
  dtype: {
    flag: '--dtype <type>',
    help: `element type of the gradients: ${gradientTypes.join(', ')}`,
    kind: choice(gradientTypes),
    default: 'float32',
  },
  /** Untimed batches first; default 1. */
  warmup: {
    flag: '--warmup <count>',
    help: 'batches before the first timed one',
    kind: whole({ min: 0, max: 1e6 }),
    default: 1,
  },
  /** Of the gradients; default 0. */
  seed: {
    flag: '--seed <number>',
    help: 'for the gradients',
    kind: whole({ min: 0, max: 2 ** 32 - 1 }),
    default: 0,
  },
});

/** The stores to measure. In a job every process calls with the same options. */
export interface StoreOptions extends RunOptions, OptionsOf<typeof storeTable> {}

/** The batches of one store. */
export interface BatchOptions extends Omit<
  Filled<typeof storeTable>,
  'kvStores' | 'network' | 'seed'
> {
  /** A name for `KVStore.create`. */
  readonly kvStore: StoreTypeName;
  /** The network whose arrays are moved. */
  readonly network: Network;
}
