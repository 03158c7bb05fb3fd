// Error counters of GPUs and their changes.
import { native } from '../../native/load.js';
import type { NativeGpuHealth } from '../../native/gpu.js';
import { gpuOf, placeName, type Machine } from '../machine/gpus.js';

interface Counts {
  readonly links: number | null;
  readonly replays: number | null;
  readonly memory: number | null;
}

function countsOf(health: NativeGpuHealth): Counts {
  const links = health.links.map(({ errors }) => errors).filter((errors) => errors !== null);
  return {
    links: links.length === 0 ? null : links.reduce((sum, errors) => sum + errors, 0),
    replays: health.pcieReplays,
    memory: health.eccErrors,
  };
}

const words: Readonly<Record<keyof Counts, string>> = {
  links: 'NVLink error',
  replays: 'PCIe replay',
  memory: 'memory error',
};

/** Counters only grow; growth during a pair's measurement belongs to it. */
export class GpuCounters {
  private readonly last = new Map<number, Counts>();
  /** By GPU, over all kinds and reads. */
  readonly counted = new Map<number, number>();

  constructor(private readonly machine: Machine) {
    for (const { ordinal, health } of machine.gpus) {
      if (health !== null) this.last.set(ordinal, countsOf(health));
    }
  }

  /** Changes since the previous read: `gpu:0 counted 3 NVLink errors`. */
  read(now: ReadonlyMap<number, NativeGpuHealth>): string[] {
    return [...now].flatMap(([gpu, health]) => {
      const before = this.last.get(gpu);
      const counts = countsOf(health);
      this.last.set(gpu, counts);
      return before === undefined ? [] : this.differences(gpu, before, counts);
    });
  }

  /** The same with current values from NVML. */
  readNow(gpus: readonly number[]): string[] {
    const now = new Map<number, NativeGpuHealth>();
    for (const gpu of gpus) {
      const { health: before, pciBusId } = gpuOf(this.machine, gpu);
      if (before === null) continue;
      const health = native().gpuHealth(pciBusId);
      if (health !== null) now.set(gpu, health);
    }
    return this.read(now);
  }

  private differences(gpu: number, before: Counts, now: Counts): string[] {
    const kinds: readonly (keyof Counts)[] = ['links', 'replays', 'memory'];
    return kinds.flatMap((kind) => {
      const counted = (now[kind] ?? 0) - (before[kind] ?? 0);
      if (before[kind] === null || now[kind] === null || counted <= 0) return [];
      this.counted.set(gpu, (this.counted.get(gpu) ?? 0) + counted);
      return [
        `${placeName(gpu)} counted ${counted} ${words[kind]}${counted === 1 ? '' : 's'} during the run`,
      ];
    });
  }
}
