// `gradlink collectives` on GPUs: which GPUs its options mean, and what is wrong with them.
import type { CollectivesOptions, Room } from './collectives-options.js';
import { presentGpus } from '../gpus.js';
import { UsageError } from '../usage-error.js';
import { readJob, type JobPlace } from '../../communicator/joining/job.js';
import { traitsOf, type Collective } from '../../results/bandwidth.js';
import { sizeText } from '../../results/units.js';
import { readMachine, type Machine } from '../../measure/machine/gpus.js';
import { native } from '../../native/load.js';
import type { NativeGpuTimingOptions } from '../../native/measure.js';
import {
  commonDtypes,
  deviceDtypes,
  dtypes,
  isFloat8,
  isHostOnly,
  type AnyDType,
} from '../../tensor/dtype.js';

/** Ranks that are GPUs. */
export interface GpuPlan {
  readonly ranks: number;
  readonly room: Room;
  /** For each rank of this process; in a job all its GPUs, dealt out to the ranks in turn. */
  readonly gpus: readonly number[];
  /** All that take part, as far as this process sees them. */
  readonly machine: Machine;
  readonly timing: NativeGpuTimingOptions;
}

/** What makes no sense on GPUs, by the name that was typed. */
function refuseHostOptions(options: CollectivesOptions): void {
  const given = [
    ...(options.ranks === undefined ? [] : ['--ranks']),
    ...(options.shared ? ['--shared'] : []),
    ...(options.threads ? ['--threads'] : []),
  ];
  const [first] = given;
  if (first !== undefined) {
    throw new UsageError(
      `${first} cannot be combined with -g, -t or --gpus: it applies to ranks in host memory.`,
    );
  }
}

function refuseGpuOptions(options: CollectivesOptions): void {
  const { cudagraph, local_register, blocking, algorithms } = options;
  const flags = [
    ...(cudagraph > 0 ? ['-G'] : []),
    ...(local_register > 0 ? ['-R'] : []),
    ...(blocking > 0 ? ['-z'] : []),
    ...(options.cpuTime ? ['-C'] : []),
    ...(options.unalign > 0 ? ['-u'] : []),
    ...(algorithms === true ? ['--algorithms'] : []),
    ...(options.likeNcclTests ? ['--like-nccl-tests'] : []),
  ];
  const [first] = flags;
  if (first !== undefined) {
    throw new UsageError(`${first} needs ranks on GPUs. Add -g GPUS.`);
  }
}

/** What makes calls that do not follow each other, or samples of which there is one. */
function refuseBesideNcclTests(options: CollectivesOptions): void {
  if (!options.likeNcclTests) return;
  const [first] = [
    ...(options.batch === undefined ? [] : ['-m']),
    ...(options.cudagraph > 0 ? ['-G'] : []),
    ...(options.blocking > 0 ? ['-z'] : []),
    ...(options.perIteration ? ['-I'] : []),
  ];
  if (first === undefined) return;
  throw new UsageError(
    `${first} and --like-nccl-tests cannot be combined: it times calls that follow each other, all together.`,
  );
}

/**
 * The GPUs that -g, -t and --gpus ask for; undefined where none of them was given.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver
 */
export function planGpus(options: CollectivesOptions): GpuPlan | undefined {
  if (options.ngpus === undefined && options.nthreads === undefined && options.gpus === undefined) {
    refuseGpuOptions(options);
    return undefined;
  }
  refuseHostOptions(options);
  if (options.cudagraph > 0 && options.blocking > 0) {
    throw new UsageError('-G and -z cannot be combined: a graph is waited for as a whole.');
  }
  if (options.cudagraph > 0 && options.perIteration) {
    throw new UsageError('-I and -G cannot be combined: a graph is timed as a whole.');
  }
  refuseBesideNcclTests(options);
  const place = readJob();
  const present = presentGpus(options.gpus);
  const timing = {
    graphLaunches: options.cudagraph,
    waiting: options.blocking,
    registration: options.local_register,
    aggregate: options.batch !== undefined,
    unalign: options.unalign,
  };
  return place === undefined
    ? { ...ofProcess(options, present), timing }
    : { ...ofJob(options, place, present), timing };
}

type Ranks = Omit<GpuPlan, 'timing'>;

function ofProcess(options: CollectivesOptions, present: number): Ranks {
  const { ngpus, nthreads = 1, gpus } = options;
  const ranks = ngpus === undefined ? (gpus?.length ?? nthreads) : ngpus * nthreads;
  if (gpus !== undefined && gpus.length !== ranks) {
    throw UsageError.of('--gpus', `${ranks} GPUs, as -g and -t say`, String(gpus.length));
  }
  if (ranks > present && gpus === undefined) {
    throw UsageError.of(
      '-g and -t',
      `at most the ${present} GPU${present === 1 ? '' : 's'} present`,
      String(ranks),
      'Use --gpus to name one several times, where the library permits it.',
    );
  }
  const ordinals = gpus ?? Array.from({ length: ranks }, (_, gpu) => gpu);
  const machine = readMachine([...new Set(ordinals)]);
  return { ranks, machine, gpus: ordinals, room: roomOf(machine, ordinals) };
}

function ofJob(options: CollectivesOptions, place: JobPlace, present: number): Ranks {
  const { ngpus = 1, nthreads = 1, gpus } = options;
  if (options.algorithms === true) {
    throw new UsageError('--algorithms needs the GPUs of one process. Use -g without a launcher.');
  }
  if (ngpus * nthreads !== 1) {
    throw UsageError.of(
      '-g and -t',
      'one GPU for each process of a job',
      String(ngpus * nthreads),
      'Start as many processes as there are GPUs.',
    );
  }
  // Every process says the same, so that each knows all.
  const list = gpus ?? Array.from({ length: present }, (_, gpu) => gpu);
  const ordinals = Array.from({ length: place.size }, (_, rank) => list[rank % list.length] ?? 0);
  const machine = readMachine([...new Set(ordinals)]);
  return { ranks: place.size, machine, gpus: list, room: roomOf(machine, ordinals) };
}

/**
 * The element types of a sweep. Of `all`, float8 is left out where these ranks cannot do it; asked for by name, it is tried.
 *
 * @throws UsageError for float8 on ranks in host memory, and for int16 on GPUs
 */
export function elementTypes(
  collective: Collective,
  asked: readonly AnyDType[],
  machine: Machine | undefined,
): readonly AnyDType[] {
  const [only] = asked;
  if (asked.length > 1 || only === undefined) {
    if (machine === undefined) return dtypes;
    return hasFloat8(collective, machine) ? deviceDtypes : commonDtypes;
  }
  if (isFloat8(only) && machine === undefined) {
    throw UsageError.of('-d', 'an element type of host memory', only, 'Add -g GPUS for float8.');
  }
  if (isHostOnly(only) && machine !== undefined) {
    throw UsageError.of('-d', 'an element type of GPUs', only, 'Use int32, or omit -g.');
  }
  return asked;
}

// NCCL adds them on GPUs from this compute capability on; it moves them on any.
const float8SumCapability = 9;

function hasFloat8(collective: Collective, { gpus }: Machine): boolean {
  const { reduces } = traitsOf(collective);
  return (
    native().gpuLibraries().ncclFloat8 &&
    gpus.every(
      ({ computeCapability }) =>
        !reduces || Number.parseInt(computeCapability, 10) >= float8SumCapability,
    )
  );
}

/** The smallest memory, and the most ranks that share one. */
function roomOf({ gpus }: Machine, ordinals: readonly number[]): Room {
  const bytes = Math.min(...gpus.map(({ memoryBytes }) => memoryBytes));
  const ranks = Math.max(
    ...gpus.map(({ ordinal }) => ordinals.filter((one) => one === ordinal).length),
  );
  return { bytes, words: `${sizeText(bytes)} of a GPU's memory`, ranks };
}
