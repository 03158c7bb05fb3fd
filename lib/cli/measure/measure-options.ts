// The options of `gradlink measure`: the original's, with its defaults, and ours; and all that can be wrong with them.
import { totalmem } from 'node:os';

import type { Command } from 'commander';

import { networkRows } from '../network-rows.js';
import { addTable, givenOf } from '../parse.js';
import {
  above,
  choice,
  flag,
  items,
  list,
  ordinals,
  whole,
  WrongValue,
  type Typed,
} from '../../options/kinds.js';
import { filled, optionTable, type ReadOf } from '../../options/table.js';
import { addReportOptions, type ReportOptions } from '../reports/report-output.js';
import { asUsage, UsageError } from '../usage-error.js';
import { GradlinkError } from '../../errors.js';
import {
  devicesOnGpus,
  devicesOnHost,
  parseDevices,
  type StoreDevices,
} from '../../kvstore/devices.js';
import { mergesOf, openingOptions } from '../../kvstore/store-options.js';
import { parseStoreType, type StoreTypeName } from '../../kvstore/types.js';
import { memoryNeed, type Merging } from '../../measure/store/batches.js';
import { storeTable, storeType, type StoreOptions } from '../../measure/store/store-options.js';
import type { Compression } from '../../measure/store/reference.js';
import { network } from '../../models/index.js';
import { native } from '../../native/load.js';
import { sizeText } from '../../results/units.js';

export const defaultCpus = 4;
const devicesOfOneGpu = 4;
const mostDevices = 1024;

/** Devices by name: `cpu:0,cpu:1` or `gpu:0,gpu:1`; `cpu` alone means `cpu:0`. A GPU may be repeated. */
export const deviceList: Typed<StoreDevices> = {
  parse(text) {
    try {
      return parseDevices(items(text).map((name) => (name.includes(':') ? name : `${name}:0`)));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new WrongValue(`E${error.message.slice(1)}.`);
    }
  },
};

const ownTable = optionTable({
  kvStore: {
    flag: '--kv-store <type>',
    help: 'type of the store',
    kind: storeType,
    default: 'device',
  },
  gpus: {
    flag: '--gpus <list>',
    help: 'GPUs, by number: 0,1,2,3; one may be several devices: 0,0,0,0 (default: all, or CPU devices)',
    kind: ordinals,
  },
  cpus: {
    flag: '--cpus <count>',
    help: `number of CPU devices (default where there is no GPU: ${String(defaultCpus)})`,
    kind: whole({ min: 1, max: mostDevices }),
  },
  devices: {
    flag: '--devices <list>',
    help: 'devices by name: cpu:0,cpu:1 or gpu:0,gpu:1',
    kind: deviceList,
  },
  compare: {
    flag: '--compare <types>',
    help: 'run these stores one after the other',
    kind: list(storeType),
  },
  ...networkRows,
  network: {
    ...networkRows.network,
    help: 'network whose arrays are moved: see gradlink models',
  },
  numLayers: { ...networkRows.numLayers, default: 152 },
  imageShape: { ...networkRows.imageShape, default: [3, 224, 224] },
  gcType: {
    flag: '--gc-type <type>',
    help: 'gradient compression: none, 2bit or 1bit',
    kind: choice(['none', '2bit', '1bit'] as const),
    default: 'none',
  },
  gcThreshold: {
    flag: '--gc-threshold <number>',
    help: 'threshold of the compression',
    kind: above(0),
    default: 0.5,
  },
  progress: { flag: '--progress', help: 'a progress bar, on a terminal', kind: flag },
});

/** What the command has besides {@link storeTable}. */
export type MeasureOptions = ReadOf<typeof ownTable> & ReportOptions;

const examples = `
One batch pushes every array of the network from every device to the store and pulls the result back to every device.
One line is the mean of --disp-batches batches, in MXNet's format, and on standard error as MXNet's are. The summary, on standard
output, names the bytes that had to be moved, the limit, and the share of it that was reached. The limit is the copy bandwidth of the machine or the GPU,
measured in this run, or between GPUs the rate of their links. On GPUs a batch is one call for all arrays.

GB/sec per gpu is MXNet's figure per device: MB x 2(n-1)/n / sec / 1000, n devices. The error is that of MXNet:
sum |out - expected| over all devices / sum |expected| over one. The expected value is a sum in float64, or the result of a
second optimizer in float64. With --gc-type it is compressed likewise, so that the error shows faults and not the
compression itself. -1: not checked.

Examples:
  $ gradlink measure --kv-store device
  $ gradlink measure --kv-store device --gpus 0,1,2,3
  $ gradlink measure --network resnet --num-layers 200 --cpus 2
  $ gradlink measure --network inception-v3 --image-shape 3,299,299 --optimizer sgd
  $ gradlink measure --network resnet --num-layers 50 --compare device,local --format markdown
  $ gradlink measure --network alexnet --gc-type 2bit --gc-threshold 0.5 --format json --output run.json

Exit status: 0 all right, 1 a wrong result or a failure, 2 wrong usage.`;

export function addMeasureOptions(command: Command): Command {
  addTable(addTable(command, ownTable), storeTable);
  return addReportOptions(command).addHelpText('after', examples);
}

/** The devices that a run uses. */
export interface ChosenDevices extends StoreDevices {
  /** What to say where nobody named any. */
  readonly byDefault: string | null;
}

/**
 * Without an option that names devices: the GPUs that are there, where the stores can use them, else CPU devices.
 *
 * @throws UsageError where several options name devices, and for GPUs that are not there.
 */
export function chooseDevices(
  options: MeasureOptions,
  stores: readonly StoreTypeName[],
): ChosenDevices {
  const { gpus, cpus, devices } = options;
  const given = Object.entries({ '--gpus': gpus, '--cpus': cpus, '--devices': devices })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (given.length > 1) {
    throw new UsageError(`${given.join(' and ')} cannot be combined. Give only one of them.`);
  }
  if (given.length === 0 && stores.every((type) => parseStoreType(type).kind !== 'allreduce')) {
    const found = gpusByDefault();
    if (found !== undefined) return found;
  }
  const chosen =
    gpus === undefined ? (devices ?? devicesOnHost(cpus ?? defaultCpus)) : devicesOnGpus(gpus);
  const [option = '--cpus'] = given;
  const { length } = chosen.names;
  if (length > mostDevices) {
    throw UsageError.of(option, `at most ${String(mostDevices)}`, String(length));
  }
  if (chosen.gpus !== null) checkGpus(option, chosen.gpus);
  const said = `No GPU is used and neither --cpus nor --devices was given: ${String(length)} CPU devices.`;
  return { ...chosen, byDefault: given.length === 0 ? said : null };
}

/** All GPUs that this process sees; one alone is several devices, or nothing would be summed. */
function gpusByDefault(): ChosenDevices | undefined {
  const present = Math.min(
    gpuCount(() => 0),
    mostDevices,
  );
  if (present === 0) return undefined;
  const gpus = Array.from({ length: present === 1 ? devicesOfOneGpu : present }, (_, i) =>
    present === 1 ? 0 : i,
  );
  const found =
    present === 1
      ? `the only GPU, as ${String(devicesOfOneGpu)} devices`
      : `all ${String(present)} GPUs`;
  return {
    ...devicesOnGpus(gpus),
    byDefault: `None of --gpus, --cpus and --devices was given: ${found}, --gpus ${gpus.join(',')}.`,
  };
}

function checkGpus(option: string, gpus: readonly number[]): void {
  const advice = `Use --cpus ${String(gpus.length)} for as many CPU devices.`;
  const present = gpuCount((reason) => {
    throw new UsageError(`${option}: ${reason}. ${advice}`);
  });
  const absent = gpus.find((gpu) => gpu >= present);
  if (absent === undefined) return;
  throw UsageError.of(
    option,
    present === 1 ? '0, the only GPU' : `GPUs from 0 to ${String(present - 1)}`,
    String(absent),
    advice,
  );
}

/** How many there are; `without` gets the reason where there is no driver. */
function gpuCount(without: (reason: string) => number): number {
  try {
    return native().gpuCount();
  } catch (error) {
    if (!(error instanceof GradlinkError) || error.code !== 'ERR_BACKEND_UNAVAILABLE') throw error;
    return without(error.message);
  }
}

/** The stores to run: --compare's, after --kv-store's where that was given too. */
export function chooseStores(
  options: MeasureOptions,
  kvStoreGiven: boolean,
): readonly StoreTypeName[] {
  if (options.compare === undefined) return [options.kvStore];
  return [...new Set([...(kvStoreGiven ? [options.kvStore] : []), ...options.compare])];
}

function checkCompression(
  { gcType, gcThreshold }: MeasureOptions,
  dtype: string,
  stores: readonly string[],
): Compression | null {
  if (gcType === 'none') return null;
  if (dtype !== 'float32') {
    throw new UsageError(`--gc-type ${gcType} cannot be combined with --dtype ${dtype}.`);
  }
  const local = stores.find((type) => parseStoreType(type).kind === 'local');
  if (local !== undefined) {
    throw new UsageError(
      `--gc-type ${gcType} cannot be combined with --kv-store ${local}. Use --kv-store device.`,
    );
  }
  return { type: gcType, threshold: gcThreshold };
}

function checkMemory(options: Parameters<typeof memoryNeed>[0], { gpus }: StoreDevices): void {
  const needed = memoryNeed(options);
  if (needed <= totalmem()) return;
  throw UsageError.of(
    `--network and --${gpus === null ? 'cpus' : 'gpus'}`,
    `arrays that fit into the ${sizeText(totalmem())} of memory`,
    sizeText(needed),
    'Use fewer devices or a smaller network.',
  );
}

/** What the stores themselves say of their options; of several, one that knows them is enough. */
function checkMerge(
  { merge, peer }: Merging,
  devices: StoreDevices,
  stores: readonly string[],
): void {
  const known = stores.find((type) => parseStoreType(type).kind === 'device');
  const other = stores.find((type) =>
    mergesOf(parseStoreType(type).kind).includes(merge ?? 'auto'),
  );
  const type = parseStoreType(known ?? other ?? stores[0]);
  asUsage(() => openingOptions({ merge, peer }, type, devices));
}

/** Everything but the stores' types, checked before anything is measured. */
export function checkMeasure(
  options: MeasureOptions,
  chosenDevices: StoreDevices,
  stores: readonly string[],
): StoreOptions {
  const given = filled(storeTable, givenOf(storeTable, options), 'measure');
  const { batches, display, dtype, optimizer } = given;
  const { multiplier } = options;
  if (display > batches) {
    throw UsageError.of(
      '--disp-batches',
      `at most the ${String(batches)} of --num-batches, or no line is ever printed`,
      String(display),
    );
  }
  const chosen = asUsage(() =>
    network(options.network, {
      numLayers: options.numLayers,
      imageShape: options.imageShape,
      numClasses: options.numClasses,
      allParams: options.allParams === true,
      ...(multiplier === undefined ? {} : { multiplier }),
    }),
  );
  const compression = checkCompression(options, dtype, stores);
  checkMerge(given, chosenDevices, stores);
  const { names: devices } = chosenDevices;
  checkMemory({ network: chosen, dtype, devices, compression, optimizer }, chosenDevices);
  return { ...given, devices, network: chosen, compression };
}
