// What is told of GPUs: by the driver, and by NVML where that is there. native/cuda/info.h has the same.

/** What one GPU is, and how it is at the moment; null where the driver or NVML does not say. */
export interface GpuInfo {
  /** Its number among the GPUs that the driver shows. */
  readonly ordinal: number;
  /** 'NVIDIA H200'. */
  readonly name: string;
  /** 'GPU-8f2e…' or, for a part of a GPU, 'MIG-…'. */
  readonly uuid: string | null;
  /** '0000:1b:00.0'. */
  readonly pciBusId: string;
  /** All of its memory. */
  readonly memoryBytes: number;
  /** '9.0'. */
  readonly computeCapability: string;
  /** How it comes by gradlink's kernels: 'cubin sm_90' (machine code, loaded as it is) or 'compiled from PTX'. */
  readonly kernels: string;
  /** Who may use it: anybody, one process at a time, nobody. */
  readonly computeMode: 'default' | 'exclusive' | 'prohibited';
  /** Streaming multiprocessors. */
  readonly multiprocessors: number;
  /** This and what follows is 0 where the driver does not tell. */
  readonly l2Bytes: number;
  /** Copies that run beside kernels. */
  readonly copyEngines: number;
  /** Width of its memory's bus. */
  readonly memoryBusBits: number;
  /** Highest clock of its memory. */
  readonly memoryClockKHz: number;
  /** Clocks, power and links now; null without NVML. */
  readonly health: GpuHealth | null;
}

/** From NVML. An idle GPU runs with lower clocks and a slower PCIe link than a busy one: read it under load. */
export interface GpuHealth {
  /** Of the host memory and cores that are nearest. */
  readonly numaNode: number | null;
  /** Of its link to the host, now: it falls while the GPU rests. */
  readonly pcieGeneration: number | null;
  /** Lanes of its link to the host, now. */
  readonly pcieWidth: number | null;
  /** That GPU and slot could have. */
  readonly maxPcieGeneration: number | null;
  /** Lanes that GPU and slot could have. */
  readonly maxPcieWidth: number | null;
  /** Of its multiprocessors, now. */
  readonly smClockMHz: number | null;
  /** Of its multiprocessors at the most. */
  readonly maxSmClockMHz: number | null;
  /** Of its memory, now. */
  readonly memoryClockMHz: number | null;
  /** Degrees Celsius. */
  readonly temperatureC: number | null;
  /** Watts, now. */
  readonly powerW: number | null;
  /** Of the last moments, up to a second: the share in which a kernel ran. */
  readonly utilizationPercent: number | null;
  /** Names, for example 'softwarePowerCap'; empty when nothing holds the clocks back. */
  readonly throttleReasons: readonly string[] | null;
  /** Memory errors since the driver was loaded, corrected ones too. */
  readonly eccErrors: number | null;
  /** Packets that PCIe has sent again since the driver was loaded. */
  readonly pcieReplays: number | null;
  /** NVLink-C2C links to the processor beside it that are up: what goes to host memory goes there, not over PCIe. */
  readonly c2cLinks: number | null;
  /** All NVLinks the GPU has, by index. */
  readonly links: readonly GpuLink[];
}

/** One NVLink of a GPU. */
export interface GpuLink {
  /** Its number on the GPU. */
  readonly index: number;
  /** Whether it is up. */
  readonly active: boolean;
  /** '4.0'. */
  readonly version: string | null;
  /** One direction. */
  readonly bytesPerSecond: number | null;
  /** PCI bus id of the other end; null for a switch or when unknown. */
  readonly remotePciBusId: string | null;
  /** Whether it leads to an NVSwitch, not to a GPU. */
  readonly remoteIsSwitch: boolean;
  /** Replays, recoveries and CRC errors since the driver was loaded. */
  readonly errors: number | null;
}
