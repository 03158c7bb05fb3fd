// Checks the GPUs of a machine: copies in each direction and both, every pair, all-reduces compared bit by bit, and
// counters and XID errors under load.
import { GradlinkError } from '../errors.js';
import { run as runCollectives } from '../measure/collectives/collectives-run.js';
import { askNccl, socketPairs } from '../measure/collectives/nccl-choices.js';
import { gpuSweepLimit } from '../measure/machine/gpu-sweep-limit.js';
import { placeName, readMachine, type Machine } from '../measure/machine/gpus.js';
import { GpuCounters } from '../measure/p2p/counters.js';
import { run as runP2p } from '../measure/p2p/p2p-run.js';
import { monotonicSeconds } from '../time.js';
import type { NativeGpuInfo } from '../native/gpu.js';
import { native } from '../native/load.js';
import { waivedCase } from '../results/case.js';
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Verdict,
} from '../results/result.js';
import { bandwidthText, mebibyte } from '../results/units.js';
import { failedWherePoor, fair, partOf, poor } from './part.js';

/** Cases of `gradlink p2p` by copy engines: reads from the other side, and both directions at once. */
export const copies = [
  'host_to_device_memcpy_ce',
  'device_to_host_memcpy_ce',
  'host_to_device_bidirectional_memcpy_ce',
  'device_local_copy',
  'device_to_device_memcpy_read_ce',
  'device_to_device_bidirectional_memcpy_read_ce',
];

/** Smaller arrays measure the cost of a call, not the links. */
const sumSizes = [1, 16, 256].map((size) => size * mebibyte);
/**
 * Amount of measurement; a quick check's copies are long enough to find a slow link, but too short for a tight verdict.
 */
const amounts = {
  whole: { bytes: 64 * mebibyte, samples: 3, loops: 16, sizes: sumSizes, iterations: 10 },
  quick: { bytes: 16 * mebibyte, samples: 1, loops: 4, sizes: sumSizes.slice(0, 2), iterations: 5 },
};

export interface GpuOptions {
  readonly gpus?: readonly number[] | undefined;
  readonly quick: boolean;
  readonly timeoutMs: number;
}

const isAbsent = (error: unknown): error is GradlinkError =>
  error instanceof GradlinkError && error.code === 'ERR_BACKEND_UNAVAILABLE';

/**
 * The GPUs to check; undefined if there are none.
 *
 * @throws GradlinkError if requested GPUs do not exist
 */
export function gpusOf(ordinals: readonly number[] | undefined): Machine | undefined {
  try {
    const machine = readMachine(ordinals);
    return machine.gpus.length === 0 ? undefined : machine;
  } catch (error) {
    if (!isAbsent(error) || ordinals !== undefined) throw error;
    return undefined;
  }
}

/** One case of copies; pairs need two GPUs. */
export async function checkCopies(
  name: string,
  { gpus, quick, timeoutMs }: GpuOptions,
): Promise<CaseResult[]> {
  const { bytes, samples, loops } = quick ? amounts.quick : amounts.whole;
  const { cases } = await runP2p({ cases: [name], gpus, bytes, samples, loops, timeoutMs });
  // In both directions at once each direction is shown, so the sum is redundant.
  const shown = cases.filter(
    ({ status, parameters: { figure } }) => status !== 'waived' && figure !== 'total',
  );
  return shown.map(failedWherePoor);
}

/**
 * Finds the GPU that sums wrongly. In a reduce-scatter of two ranks each adds its own half, so a wrong half names its
 * GPU. Each GPU is the first of a pair once.
 */
async function whoIsWrong(
  gpus: readonly number[],
  bytes: number,
  timeoutMs: number,
): Promise<string[]> {
  const wrong = new Set<string>();
  for (const [at, gpu] of gpus.entries()) {
    const { cases } = await runCollectives({
      collective: 'reduce_scatter',
      gpus: [gpu, gpus[(at + 1) % gpus.length]!],
      sizes: [bytes],
      iterations: 1,
      timeoutMs,
    });
    for (const { check } of cases.filter(hasMeasurement)) {
      if (check.firstWrong?.device !== undefined) wrong.add(check.firstWrong.device);
    }
  }
  return [...wrong].sort();
}

/** Through host memory GPUs reach about half of their links' rate, over sockets a tenth or less. */
const socketShare = 0.25;

/**
 * `gpu:0 and gpu:1` if NCCL uses sockets between them. NCCL knows it and its own limit is as low, so pairs are tested
 * when the largest all-reduce is slow compared with the links.
 */
async function overSockets(
  machine: Machine,
  { bytes, busBandwidth, verdict }: Measurement,
  timeoutMs: number,
): Promise<string[]> {
  const gpus = machine.gpus.map(({ ordinal }) => ordinal);
  const { rate } = gpuSweepLimit(machine, gpus);
  const isSlow =
    rate === undefined
      ? verdict.level !== 'good'
      : busBandwidth.bytesPerSecond < socketShare * rate.bytesPerSecond;
  if (!isSlow) return [];
  const sizes = `-b ${String(bytes)} -e ${String(bytes)} -T ${String(timeoutMs / 1000)}`;
  const args = `all_reduce --gpus ${gpus.join(',')} ${sizes} --iters 1 -w 0 -c 0`;
  const log = await askNccl(['collectives', ...args.split(' ')]);
  return socketPairs(log).map((pair) => pair.map((rank) => placeName(gpus[rank]!)).join(' and '));
}

/** One sweep of all GPUs. Names the GPU of a wrong sum, and for a slow one checks whether NCCL uses sockets. */
export async function checkSums(
  machine: Machine,
  { quick, timeoutMs }: GpuOptions,
): Promise<CaseResult[]> {
  const gpus = machine.gpus.map(({ ordinal }) => ordinal);
  if (gpus.length < 2) return [];
  const { sizes, iterations } = quick ? amounts.quick : amounts.whole;
  const identity = { name: 'all_reduce', parameters: { between: 'gpus', ranks: gpus.length } };
  try {
    const given = { collective: 'all_reduce', gpus, sizes, iterations, timeoutMs } as const;
    const { cases } = await runCollectives(given);
    const measured = cases.filter(hasMeasurement);
    const [wrong] = measured.filter(({ check }) => !check.passed);
    const who = wrong === undefined ? [] : await whoIsWrong(gpus, wrong.bytes, timeoutMs);
    const largest = measured.at(-1);
    const pairs = largest === undefined ? [] : await overSockets(machine, largest, timeoutMs);
    return cases.map((one): CaseResult => {
      const { bytes = null, placement = null } = one.parameters;
      const named = { ...one, parameters: { ...identity.parameters, bytes, placement } };
      if (named.status === 'error' && hasMeasurement(named) && who.length > 0) {
        return { ...named, reason: `${who.join(' and ')} computes wrong sums: ${named.reason}` };
      }
      if (pairs.length === 0 || !hasMeasurement(named) || !named.check.passed) {
        return failedWherePoor(named);
      }
      const text = `${bandwidthText(named.busBandwidth.bytesPerSecond)}: NCCL goes over sockets`;
      const likelyCause = `NCCL passes data over sockets between ${pairs.join(', ')}: direct access and shared memory are off (NCCL_P2P_DISABLE, NCCL_SHM_DISABLE), or fail here`;
      return failedWherePoor({ ...named, verdict: poor(text, likelyCause) });
    });
  } catch (error) {
    if (!isAbsent(error)) throw error;
    return [waivedCase(identity, error.message)];
  }
}

const fellOff = 'the GPU fell off the bus: its slot, its power, or heat';
const xidsOfMemory = [48, 63, 64, 92, 94, 95];
const xidsOfPrograms = [13, 31, 43, 45];

/** Classifies an XID error by NVIDIA's numbers. */
function xidVerdict(xid: number): Verdict {
  const text = `XID ${String(xid)} under load`;
  if (xidsOfPrograms.includes(xid)) return fair(text, 'a program that used the GPU wrongly');
  if (xidsOfMemory.includes(xid)) return poor(text, 'memory of the GPU that fails');
  if (xid === 74) return poor(text, 'an NVLink: its bridge, its switch, or the GPU beyond it');
  return poor(text, xid === 79 ? fellOff : "the GPU or its driver: see NVIDIA's list of XIDs");
}

/** Compares GPU health before and after the load: errors and throttling. */
export class HealthPart {
  private readonly counters: GpuCounters;
  private readonly start = monotonicSeconds();
  /** In a burn-in, errors since the previous round. */
  private readonly earlier: ReadonlyMap<string, readonly number[]>;

  constructor(private readonly machine: Machine) {
    this.counters = new GpuCounters(machine);
    this.earlier = new Map(
      machine.gpus.map(({ pciBusId }) => [pciBusId, native().gpuXids(pciBusId)]),
    );
  }

  parts(): CaseResult[] {
    const samplesSeconds = [monotonicSeconds() - this.start];
    return this.machine.gpus.flatMap((gpu) => {
      const found = this.faults(gpu);
      if (found === undefined) return [];
      const verdict: Verdict = {
        level: found.some(({ level }) => level === 'poor') ? 'poor' : (found[0]?.level ?? 'good'),
        text: found.map(({ text }) => text).join('; ') || 'no error counted under load',
        likelyCause: [...new Set(found.map(({ likelyCause }) => likelyCause))].join('; ') || null,
      };
      const parameters = { gpu: placeName(gpu.ordinal) };
      const values = { errors: this.counters.counted.get(gpu.ordinal) ?? 0 };
      return [partOf({ name: 'health', parameters }, { samplesSeconds, verdict, values })];
    });
  }

  /** Undefined if NVML does not know the GPU. */
  private faults({ ordinal, pciBusId, health: before }: NativeGpuInfo): Verdict[] | undefined {
    const xids = [...this.earlier.get(pciBusId)!, ...native().gpuXids(pciBusId)].map(xidVerdict);
    const health = native().gpuHealth(pciBusId);
    if (health === null)
      return before === null ? undefined : [...xids, poor('NVML has lost it', fellOff)];
    const errors = this.counters.read(new Map([[ordinal, health]]));
    // Heat and power failures are faults; a power cap is a setting.
    const slowed = (health.throttleReasons ?? [])
      .filter((reason) => /^(hardware|softwareThermal$)/.test(reason))
      .join(', ');
    const loses = 'a cable, bridge or connector that loses packets, or memory that fails';
    const slow = poor(`clocks held back under load: ${slowed}`, 'cooling and power of the machine');
    return [...errors.map((text) => poor(text, loses)), ...(slowed === '' ? [] : [slow]), ...xids];
  }
}
