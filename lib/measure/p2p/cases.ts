// The cases of `gradlink p2p`: nvbandwidth's single-node cases by name and order, one record each. A record lists the
// copies of a figure; the rest follows from it.
import { nativeHostMemory, type NativeGpuCopy } from '../../native/gpu-measure.js';
import { placeName } from '../machine/gpus.js';

const host = nativeHostMemory;

/** How copies become figures. */
export type Figures =
  /** Of the single measured copy. */
  | 'one'
  /** Of the first of two measured copies, and the sum of their rates. */
  | 'first and sum'
  /** Of all measured copies together. */
  | 'total';

/** Copies that run in parallel. */
export interface CopyPlan {
  readonly copies: readonly NativeGpuCopy[];
  /** Number of measured copies; the others are background load. */
  readonly measured: number;
  readonly figures: Figures;
  /** For `total`: the GPU that all data comes from or goes to. */
  readonly one?: number;
}

/** A linked list to follow. */
export interface LatencyPlan {
  readonly by: number;
  readonly memory: number;
}

/** The clock of a latency. */
export type LatencyClock =
  /** The GPU's, from copy to copy. */
  | 'gpu'
  /** The host's, until a copy is queued behind others. */
  | 'issue'
  /** The host's, from queueing a copy until its end is known. */
  | 'complete';

export interface SmallCopies {
  readonly bytes: number;
  readonly loops: number;
  readonly clock: LatencyClock;
}

export interface P2pCase {
  readonly name: string;
  /** The measurement and the direction of the data, in words. */
  readonly what: string;
  /** Minimum number of GPUs. */
  readonly gpus: 1 | 2;
  /** Whether GPUs access each other's memory; absent: if they can. */
  readonly peerAccess?: boolean;
  /** Copies small enough that their time counts rather than their rate. */
  readonly latency?: SmallCopies;
  readonly plans: (gpus: readonly number[]) => readonly (CopyPlan | LatencyPlan)[];
}

export function isLatency(plan: CopyPlan | LatencyPlan): plan is LatencyPlan {
  return 'memory' in plan;
}

type Engine = 'ce' | 'sm';
const engines: readonly Engine[] = ['ce', 'sm'];
const engineWords = { ce: 'copy engine', sm: 'multiprocessors' } as const;

interface Group {
  /** ENGINE stands for the engine. */
  readonly name: string;
  readonly what: string;
  readonly gpus: 1 | 2;
  readonly plan: (gpus: readonly number[], kernel: boolean) => readonly CopyPlan[];
}

function toDevice(gpu: number, kernel: boolean): NativeGpuCopy {
  return { from: host, to: gpu, by: gpu, kernel };
}

function toHost(gpu: number, kernel: boolean): NativeGpuCopy {
  return { from: gpu, to: host, by: gpu, kernel };
}

/** From one GPU to another: the receiver reads, or the sender writes. */
function across(from: number, to: number, reads: boolean, kernel: boolean): NativeGpuCopy {
  return { from, to, by: reads ? to : from, kernel };
}

function alone(copy: NativeGpuCopy, beside: readonly NativeGpuCopy[] = []): CopyPlan {
  return { copies: [copy, ...beside], measured: 1, figures: 'one' };
}

function pairs(gpus: readonly number[]): (readonly [number, number])[] {
  return gpus.flatMap((from) => gpus.filter((to) => to !== from).map((to) => [from, to] as const));
}

const others = (gpus: readonly number[], one: number): number[] =>
  gpus.filter((gpu) => gpu !== one);

function pairGroups(): Group[] {
  const ways = [
    { name: 'read', words: 'the GPU that receives reads it', reads: true },
    { name: 'write', words: 'the GPU that sends writes it', reads: false },
  ];
  return [
    ...ways.map(({ name, words, reads }): Group => ({
      name: `device_to_device_memcpy_${name}_ENGINE`,
      what: `from one GPU to another, every ordered pair; ${words}`,
      gpus: 2,
      plan: (gpus, kernel) =>
        pairs(gpus).map(([from, to]) => alone(across(from, to, reads, kernel))),
    })),
    ...ways.map(({ name, words, reads }): Group => ({
      name: `device_to_device_bidirectional_memcpy_${name}_ENGINE`,
      what: `both directions between two GPUs at once, every ordered pair; ${words}; each direction and their sum`,
      gpus: 2,
      plan: (gpus, kernel) =>
        pairs(gpus).map(([from, to]) => ({
          copies: [across(from, to, reads, kernel), across(to, from, reads, kernel)],
          measured: 2,
          figures: 'first and sum' as const,
        })),
    })),
  ];
}

function hostGroups(): Group[] {
  return [
    {
      name: 'host_to_device_memcpy_ENGINE',
      what: 'from page-locked host memory to each GPU, one at a time',
      gpus: 1,
      plan: (gpus, kernel) => gpus.map((gpu) => alone(toDevice(gpu, kernel))),
    },
    {
      name: 'device_to_host_memcpy_ENGINE',
      what: 'from each GPU to page-locked host memory, one at a time',
      gpus: 1,
      plan: (gpus, kernel) => gpus.map((gpu) => alone(toHost(gpu, kernel))),
    },
    {
      name: 'host_to_device_bidirectional_memcpy_ENGINE',
      what: 'from host memory to each GPU, while the same GPU copies to host memory',
      gpus: 1,
      plan: (gpus, kernel) =>
        gpus.map((gpu) => alone(toDevice(gpu, kernel), [toHost(gpu, kernel)])),
    },
    {
      name: 'device_to_host_bidirectional_memcpy_ENGINE',
      what: 'from each GPU to host memory, while host memory is copied to the same GPU',
      gpus: 1,
      plan: (gpus, kernel) =>
        gpus.map((gpu) => alone(toHost(gpu, kernel), [toDevice(gpu, kernel)])),
    },
  ];
}

function allHostGroups(): Group[] {
  const toHosts = (gpus: readonly number[], kernel: boolean): NativeGpuCopy[] =>
    gpus.map((gpu) => toHost(gpu, kernel));
  const toDevices = (gpus: readonly number[], kernel: boolean): NativeGpuCopy[] =>
    gpus.map((gpu) => toDevice(gpu, kernel));
  const bothWays = (gpus: readonly number[], kernel: boolean): NativeGpuCopy[] =>
    gpus.flatMap((gpu) => [toHost(gpu, kernel), toDevice(gpu, kernel)]);
  return [
    {
      name: 'all_to_host_memcpy_ENGINE',
      what: 'from one GPU to host memory, while all other GPUs do the same',
      gpus: 2,
      plan: (gpus, kernel) =>
        gpus.map((gpu) => alone(toHost(gpu, kernel), toHosts(others(gpus, gpu), kernel))),
    },
    {
      name: 'all_to_host_bidirectional_memcpy_ENGINE',
      what: 'from one GPU to host memory, while it gets as much, and all other GPUs copy both ways',
      gpus: 2,
      plan: (gpus, kernel) =>
        gpus.map((gpu) =>
          alone(toHost(gpu, kernel), [
            toDevice(gpu, kernel),
            ...bothWays(others(gpus, gpu), kernel),
          ]),
        ),
    },
    {
      name: 'host_to_all_memcpy_ENGINE',
      what: 'from host memory to one GPU, while all other GPUs get the same',
      gpus: 2,
      plan: (gpus, kernel) =>
        gpus.map((gpu) => alone(toDevice(gpu, kernel), toDevices(others(gpus, gpu), kernel))),
    },
    {
      name: 'host_to_all_bidirectional_memcpy_ENGINE',
      what: 'from host memory to one GPU, while it gives as much, and all other GPUs copy both ways',
      gpus: 2,
      plan: (gpus, kernel) =>
        gpus.map((gpu) =>
          alone(toDevice(gpu, kernel), [
            toHost(gpu, kernel),
            ...bothWays(others(gpus, gpu), kernel),
          ]),
        ),
    },
  ];
}

function fanGroups(): Group[] {
  const gather =
    (reads: boolean) =>
    (gpus: readonly number[], kernel: boolean): CopyPlan[] =>
      gpus.map((one) => {
        const copies = others(gpus, one).map((from) => across(from, one, reads, kernel));
        return { copies, measured: copies.length, figures: 'total', one };
      });
  const spread =
    (reads: boolean) =>
    (gpus: readonly number[], kernel: boolean): CopyPlan[] =>
      gpus.map((one) => {
        const copies = others(gpus, one).map((to) => across(one, to, reads, kernel));
        return { copies, measured: copies.length, figures: 'total', one };
      });
  return [
    {
      name: 'all_to_one_write_ENGINE',
      what: 'from all other GPUs to one at once, each writes; the sum',
      gpus: 2,
      plan: gather(false),
    },
    {
      name: 'all_to_one_read_ENGINE',
      what: 'from all other GPUs to one at once, the one reads; the sum',
      gpus: 2,
      plan: gather(true),
    },
    {
      name: 'one_to_all_write_ENGINE',
      what: 'from one GPU to all others at once, the one writes; the sum',
      gpus: 2,
      plan: spread(false),
    },
    {
      name: 'one_to_all_read_ENGINE',
      what: 'from one GPU to all others at once, each reads; the sum',
      gpus: 2,
      plan: spread(true),
    },
  ];
}

const groups: readonly Group[] = [
  ...hostGroups(),
  ...pairGroups(),
  ...allHostGroups(),
  ...fanGroups(),
];

/** In nvbandwidth's order, so that indices are equal. */
export const p2pCases: readonly P2pCase[] = [
  ...engines.flatMap((engine) =>
    groups.map(({ name, what, gpus, plan }): P2pCase => ({
      name: name.replace('ENGINE', engine),
      what: `${what} (${engineWords[engine]})`,
      gpus,
      plans: (ordinals) => plan(ordinals, engine === 'sm'),
    })),
  ),
  {
    name: 'host_device_latency_sm',
    what: 'one load by a GPU from page-locked host memory, along a list of pointers',
    gpus: 1,
    plans: (gpus) => gpus.map((by) => ({ by, memory: host })),
  },
  {
    name: 'device_to_device_latency_sm',
    what: "one load by a GPU from another's memory, along a list of pointers",
    gpus: 2,
    plans: (gpus) => pairs(gpus).map(([memory, by]) => ({ by, memory })),
  },
  {
    name: 'device_local_copy',
    what: 'from one place to another in the same GPU: its size over the time (copy engine)',
    gpus: 1,
    plans: (gpus) => gpus.map((gpu) => alone({ from: gpu, to: gpu, by: gpu, kernel: false })),
  },
];

/** `gpu:0 to gpu:1, written by gpu:0 with its copy engine`. */
export function flowOf({ from, to, by, kernel }: NativeGpuCopy): string {
  const engine = kernel ? 'multiprocessors' : 'copy engine';
  const way = `${placeName(from)} to ${placeName(to)}`;
  if (from === to) return `within ${placeName(from)}, by its ${engine}`;
  if (from === host || to === host) return `${way}, by its ${engine}`;
  return `${way}, ${by === to ? 'read' : 'written'} by ${placeName(by)} with its ${engine}`;
}
