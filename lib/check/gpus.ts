// The GPUs of a machine: copies each way and both ways, every pair, sums right to the bit, and what their counters say of
// the load.
import { GradlinkError } from '../errors.js';
import { run as runCollectives } from '../measure/collectives/collectives-run.js';
import { placeName, readMachine, type Machine } from '../measure/machine/gpus.js';
import { GpuCounters } from '../measure/p2p/counters.js';
import { run as runP2p } from '../measure/p2p/p2p-run.js';
import { monotonicSeconds } from '../time.js';
import { native } from '../native/load.js';
import { waivedCase } from '../results/case.js';
import { hasMeasurement, type CaseResult, type Verdict } from '../results/result.js';
import { mebibyte } from '../results/units.js';
import { failedWherePoor, partOf } from './part.js';

/** A case of `gradlink p2p` each, of copy engines: what they read from the other side, and both directions at once. */
export const copies = [
  'host_to_device_memcpy_ce',
  'device_to_host_memcpy_ce',
  'host_to_device_bidirectional_memcpy_ce',
  'device_local_copy',
  'device_to_device_memcpy_read_ce',
  'device_to_device_bidirectional_memcpy_read_ce',
];
const isOfPairs = (name: string): boolean => name.startsWith('device_to_device');

/** Small ones are decided by the cost of a call, and show nothing of links. */
const sumSizes = [1, 16, 256].map((size) => size * mebibyte);
/** How much is measured; a first look's copies are too short for a tight verdict, and long enough for a slow link. */
const amounts = {
  whole: { bytes: 64 * mebibyte, samples: 3, loops: 16, sizes: sumSizes, iterations: 10 },
  quick: { bytes: 16 * mebibyte, samples: 1, loops: 4, sizes: sumSizes.slice(0, 2), iterations: 5 },
};

export interface GpuOptions {
  readonly gpus?: readonly number[] | undefined;
  readonly quick: boolean;
  readonly timeoutMs: number;
}

/**
 * The GPUs that are looked at; undefined where there are none.
 *
 * @throws GradlinkError where some were asked for, and are not there
 */
export function gpusOf(ordinals: readonly number[] | undefined): Machine | undefined {
  try {
    const machine = readMachine(ordinals);
    return machine.gpus.length === 0 ? undefined : machine;
  } catch (error) {
    const absent = error instanceof GradlinkError && error.code === 'ERR_BACKEND_UNAVAILABLE';
    if (!absent || ordinals !== undefined) throw error;
    return undefined;
  }
}

/** One case of copies. */
export async function checkCopies(
  name: string,
  { gpus, quick, timeoutMs }: GpuOptions,
): Promise<CaseResult[]> {
  const { bytes, samples, loops } = quick ? amounts.quick : amounts.whole;
  const { cases } = await runP2p({ cases: [name], gpus, bytes, samples, loops, timeoutMs });
  // Of both ways at once each is there, and their sum tells no more.
  const shown = cases.filter(
    ({ status, parameters: { figure } }) => status !== 'waived' && figure !== 'total',
  );
  return shown.map(failedWherePoor);
}

/** Cases that one machine of so many GPUs has. */
export function copiesOf({ gpus }: Machine): string[] {
  return copies.filter((name) => gpus.length > 1 || !isOfPairs(name));
}

/** Whether the sum of these is right. */
async function isRight(
  gpus: readonly number[],
  bytes: number,
  timeoutMs: number,
): Promise<boolean> {
  const { cases } = await runCollectives({
    collective: 'all_reduce',
    gpus,
    sizes: [bytes],
    iterations: 1,
    timeoutMs,
  });
  return cases.every(({ status }) => status === 'ok');
}

/**
 * Who is in every pair of neighbours that sums wrongly, and in none that sums rightly: `gpu:2`. Undefined where that does
 * not tell one.
 */
async function whoIsWrong(
  gpus: readonly number[],
  bytes: number,
  timeoutMs: number,
): Promise<string | undefined> {
  const pairs = gpus.map((gpu, at) => [gpu, gpus[(at + 1) % gpus.length]!] as const);
  const suspects = new Set(gpus);
  let isAnyWrong = false;
  for (const pair of gpus.length === 2 ? [] : pairs) {
    const right = await isRight(pair, bytes, timeoutMs);
    isAnyWrong ||= !right;
    for (const gpu of gpus) if (right === pair.includes(gpu)) suspects.delete(gpu);
  }
  const [only, another] = suspects;
  return isAnyWrong && only !== undefined && another === undefined
    ? `gpu:${String(only)}`
    : undefined;
}

/** One sweep of all GPUs; where a sum is wrong, the one that makes it so. */
export async function checkSums(
  machine: Machine,
  { quick, timeoutMs }: GpuOptions,
): Promise<CaseResult[]> {
  const gpus = machine.gpus.map(({ ordinal }) => ordinal);
  if (gpus.length < 2) return [];
  const { sizes, iterations } = quick ? amounts.quick : amounts.whole;
  const identity = { name: 'all_reduce', parameters: { between: 'gpus', ranks: gpus.length } };
  try {
    const { cases } = await runCollectives({
      collective: 'all_reduce',
      gpus,
      sizes,
      iterations,
      timeoutMs,
    });
    const wrong = cases.find((one) => hasMeasurement(one) && !one.check.passed);
    const who =
      wrong === undefined
        ? undefined
        : await whoIsWrong(gpus, Number(wrong.parameters.bytes), timeoutMs);
    return cases.map((one): CaseResult => {
      const { bytes, placement } = one.parameters;
      const parameters = {
        ...identity.parameters,
        bytes: bytes ?? null,
        placement: placement ?? null,
      };
      const named = { ...one, parameters };
      return who !== undefined && named.status === 'error' && hasMeasurement(named)
        ? { ...named, reason: `${who} computes wrong sums: ${named.reason}` }
        : failedWherePoor(named);
    });
  } catch (error) {
    const missing = error instanceof GradlinkError && error.code === 'ERR_BACKEND_UNAVAILABLE';
    if (!missing) throw error;
    return [waivedCase(identity, error.message)];
  }
}

/** Heat and failing power are faults; a cap of power is a setting. */
const isFault = (reason: string): boolean =>
  reason.startsWith('hardware') || reason === 'softwareThermal';

function healthVerdict(errors: readonly string[], reasons: readonly string[]): Verdict {
  const slowed = reasons.filter(isFault);
  if (errors.length === 0 && slowed.length === 0) {
    return { level: 'good', text: 'no error counted under load', likelyCause: null };
  }
  const text = [
    ...errors,
    ...(slowed.length === 0 ? [] : [`clocks held back under load: ${slowed.join(', ')}`]),
  ];
  const causes = [
    ...(errors.length === 0
      ? []
      : ['a cable, bridge or connector that loses packets, or memory that fails']),
    ...(slowed.length === 0 ? [] : ['cooling and power of the machine']),
  ];
  return { level: 'poor', text: text.join('; '), likelyCause: causes.join('; ') };
}

/** What the GPUs say of themselves before the load and after it: error counters, and what holds their clocks back. */
export class HealthPart {
  private readonly counters: GpuCounters;
  private readonly start = monotonicSeconds();

  constructor(private readonly machine: Machine) {
    this.counters = new GpuCounters(machine);
  }

  /** A part for each GPU that NVML knows. */
  parts(): CaseResult[] {
    const samplesSeconds = [monotonicSeconds() - this.start];
    return this.machine.gpus.flatMap(({ ordinal, pciBusId }) => {
      const health = native().gpuHealth(pciBusId);
      if (health === null) return [];
      const errors = this.counters.read(new Map([[ordinal, health]]));
      const verdict = healthVerdict(errors, health.throttleReasons ?? []);
      const parameters = { gpu: placeName(ordinal) };
      const values = { errors: this.counters.counted.get(ordinal) ?? 0 };
      return [partOf({ name: 'health', parameters }, { samplesSeconds, verdict, values })];
    });
  }
}
