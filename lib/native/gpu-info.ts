// What is told of GPUs: by the driver, and by NVML where that is there. native/cuda/info.h has the same.

/** What one GPU is, and how it is at the moment; null where the driver or NVML does not say. */
export interface GpuInfo {
  readonly ordinal: number;
  /** 'NVIDIA H200'. */
  readonly name: string;
  /** 'GPU-8f2e…' or, for a part of a GPU, 'MIG-…'. */
  readonly uuid: string | null;
  /** '0000:1b:00.0'. */
  readonly pciBusId: string;
  readonly memoryBytes: number;
  /** '9.0'. */
  readonly computeCapability: string;
  /** How it comes by gradlink's kernels: 'cubin sm_90' (machine code, loaded as it is) or 'compiled from PTX'. */
  readonly kernels: string;
  /** Who may use it: anybody, one process at a time, nobody. */
  readonly computeMode: 'default' | 'exclusive' | 'prohibited';
  readonly multiprocessors: number;
  /** This and what follows is 0 where the driver does not tell. */
  readonly l2Bytes: number;
  readonly copyEngines: number;
  readonly memoryBusBits: number;
  readonly memoryClockKHz: number;
  readonly health: GpuHealth | null;
}

/** From NVML. An idle GPU runs with lower clocks and a slower PCIe link than a busy one: read it under load. */
export interface GpuHealth {
  /** Of the host memory and cores that are nearest. */
  readonly numaNode: number | null;
  readonly pcieGeneration: number | null;
  readonly pcieWidth: number | null;
  readonly maxPcieGeneration: number | null;
  readonly maxPcieWidth: number | null;
  readonly smClockMHz: number | null;
  readonly maxSmClockMHz: number | null;
  readonly memoryClockMHz: number | null;
  readonly temperatureC: number | null;
  readonly powerW: number | null;
  /** Of the last moments, up to a second: the share in which a kernel ran. */
  readonly utilizationPercent: number | null;
  /** Names, for example 'softwarePowerCap'; empty when nothing holds the clocks back. */
  readonly throttleReasons: readonly string[] | null;
  /** Memory errors since the driver was loaded, corrected ones too. */
  readonly eccErrors: number | null;
  readonly pcieReplays: number | null;
  /** NVLink-C2C links to the processor beside it that are up: what goes to host memory goes there, not over PCIe. */
  readonly c2cLinks: number | null;
  /** All NVLinks the GPU has, by index. */
  readonly links: readonly GpuLink[];
}

/** One NVLink of a GPU. */
export interface GpuLink {
  readonly index: number;
  readonly active: boolean;
  /** '4.0'. */
  readonly version: string | null;
  /** One direction. */
  readonly bytesPerSecond: number | null;
  /** PCI bus id of the other end; null for a switch or when unknown. */
  readonly remotePciBusId: string | null;
  readonly remoteIsSwitch: boolean;
  /** Replays, recoveries and CRC errors since the driver was loaded. */
  readonly errors: number | null;
}
