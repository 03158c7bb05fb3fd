// The GPUs of a machine and their links, for limits and verdicts.
import { native } from '../../native/load.js';
import type { NativeGpuHealth, NativeGpuInfo } from '../../native/gpu.js';

export interface Peer {
  /** Whether the first GPU's kernels and copies access the second's memory. */
  readonly access: boolean;
  /** Their common point over PCIe: 'PIX', 'NODE', ...; null if unknown. */
  readonly path: string | null;
}

export interface Machine {
  readonly gpus: readonly NativeGpuInfo[];
  /** From one ordinal to another. */
  peer(from: number, to: number): Peer;
}

/**
 * Asks the driver, and NVML if present.
 *
 * @param ordinals the GPUs to use; default all
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver
 */
export function readMachine(ordinals?: readonly number[]): Machine {
  const addon = native();
  const all = Array.from({ length: addon.gpuCount() }, (_, ordinal) => ordinal);
  const gpus = (ordinals ?? all).map((ordinal) => addon.gpuInfo(ordinal));
  const peers = new Map<string, Peer>();
  for (const { ordinal: from } of gpus) {
    for (const { ordinal: to } of gpus) {
      if (from !== to) peers.set(`${from}>${to}`, addon.gpuPeer(from, to));
    }
  }
  return {
    gpus,
    peer: (from, to) => peers.get(`${from}>${to}`) ?? { access: from === to, path: null },
  };
}

export function gpuOf(machine: Machine, ordinal: number): NativeGpuInfo {
  const gpu = machine.gpus.find((one) => one.ordinal === ordinal);
  if (gpu === undefined) throw new RangeError(`there is no gpu:${ordinal} in this run`);
  return gpu;
}

/** `gpu:0` or `host`. */
export function placeName(place: number): string {
  return place < 0 ? 'host' : `gpu:${place}`;
}

/** NVLinks of one direction between two GPUs, or from one to the switch. */
export interface Links {
  readonly active: number;
  /** Including those that seem down compared with similar GPUs of the machine. */
  readonly expected: number;
  /** Per link and direction. */
  readonly bytesPerSecond: number;
}

// Nominal rates per link and direction, for versions where NVML does not tell.
const nominalLinkRates: Readonly<Record<string, number>> = {
  '1.0': 20e9,
  '2.0': 25e9,
  '2.2': 25e9,
  '3.0': 25e9,
  '3.1': 25e9,
  '4.0': 26.5625e9,
  '5.0': 53.125e9,
};

function activeLinks(health: NativeGpuHealth | null): readonly NativeGpuHealth['links'][number][] {
  return health?.links.filter(({ active }) => active) ?? [];
}

function linkRate(health: NativeGpuHealth): number | undefined {
  for (const link of activeLinks(health)) {
    const rate = link.bytesPerSecond ?? nominalLinkRates[link.version ?? ''];
    if (rate !== undefined && rate > 0) return rate;
  }
  return undefined;
}

/** How many links fewer a GPU has than the best of its kind here; 0 unless some are inactive. */
export function linksDown(machine: Machine, ordinal: number): number {
  const { health, name } = gpuOf(machine, ordinal);
  if (health === null) return 0;
  const own = activeLinks(health).length;
  const inactive = health.links.length - own;
  const best = Math.max(
    ...machine.gpus.filter((gpu) => gpu.name === name).map((gpu) => activeLinks(gpu.health).length),
  );
  return Math.min(best - own, inactive);
}

/** All NVLinks of a GPU; undefined if none is up. */
export function linksOf(machine: Machine, ordinal: number): Links | undefined {
  const { health } = gpuOf(machine, ordinal);
  if (health === null) return undefined;
  const bytesPerSecond = linkRate(health);
  if (bytesPerSecond === undefined) return undefined;
  const active = activeLinks(health).length;
  return { active, expected: active + linksDown(machine, ordinal), bytesPerSecond };
}

/** Whether NVML does not know where some NVLinks lead, as in a virtual machine whose host keeps the NVSwitches. */
export function hasUnknownLinks(machine: Machine, ordinal: number): boolean {
  return activeLinks(gpuOf(machine, ordinal).health).some(
    ({ remoteIsSwitch, remotePciBusId }) => !remoteIsSwitch && remotePciBusId === null,
  );
}

/** The NVLinks from one GPU to another; undefined if there are none. */
export function linksBetween(machine: Machine, from: number, to: number): Links | undefined {
  const one = gpuOf(machine, from);
  const other = gpuOf(machine, to);
  if (one.health === null || other.health === null) return undefined;
  const bytesPerSecond = linkRate(one.health);
  if (bytesPerSecond === undefined) return undefined;
  const direct = activeLinks(one.health).filter(
    ({ remotePciBusId }) => remotePciBusId === other.pciBusId,
  ).length;
  // A link that is down is missing on both sides.
  const down = Math.min(linksDown(machine, from), linksDown(machine, to));
  if (direct > 0) return { active: direct, expected: direct + down, bytesPerSecond };
  const switched = (health: NativeGpuHealth): number =>
    activeLinks(health).filter(({ remoteIsSwitch }) => remoteIsSwitch).length;
  const active = Math.min(switched(one.health), switched(other.health));
  if (active === 0) return undefined;
  // Through a switch every link of either side counts.
  const expected = active + Math.max(linksDown(machine, from), linksDown(machine, to));
  return { active, expected, bytesPerSecond };
}
