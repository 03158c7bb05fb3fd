// Facts of GPUs from the driver and NVML. Mirrors native/cuda/info.h.

/** A GPU and its current state; unknown values are null. */
export interface GpuInfo {
  /** Its ordinal in the driver. */
  readonly ordinal: number;
  /** 'NVIDIA H200'. */
  readonly name: string;
  /** 'GPU-8f2e…' or, for a MIG partition, 'MIG-…'. */
  readonly uuid: string | null;
  /** '0000:1b:00.0'. */
  readonly pciBusId: string;
  /** Total memory. */
  readonly memoryBytes: number;
  /** '9.0'. */
  readonly computeCapability: string;
  /** How gradlink's kernels are loaded: 'cubin sm_90' (machine code), 'compiled from PTX', or 'none: ' and why. */
  readonly kernels: string;
  /** Which processes may use it: any, one at a time, none. */
  readonly computeMode: 'default' | 'exclusive' | 'prohibited';
  /** Streaming multiprocessors. */
  readonly multiprocessors: number;
  /** This and the following values are 0 if the driver does not tell. */
  readonly l2Bytes: number;
  /** Copies that can run beside kernels. */
  readonly copyEngines: number;
  /** Width of the memory bus. */
  readonly memoryBusBits: number;
  /** Highest memory clock. */
  readonly memoryClockKHz: number;
  /** Current clocks, power and links; null without NVML. */
  readonly health: GpuHealth | null;
}

/** From NVML. An idle GPU lowers its clocks and PCIe link: read it under load. */
export interface GpuHealth {
  /** The NUMA node of the nearest memory and cores. */
  readonly numaNode: number | null;
  /** Current generation of its PCIe link, which drops when idle. */
  readonly pcieGeneration: number | null;
  /** Current lanes of its PCIe link. */
  readonly pcieWidth: number | null;
  /** Highest generation of GPU and slot. */
  readonly maxPcieGeneration: number | null;
  /** Most lanes of GPU and slot. */
  readonly maxPcieWidth: number | null;
  /** Current clock of the multiprocessors. */
  readonly smClockMHz: number | null;
  /** Highest clock of the multiprocessors. */
  readonly maxSmClockMHz: number | null;
  /** Current memory clock. */
  readonly memoryClockMHz: number | null;
  /** Degrees Celsius. */
  readonly temperatureC: number | null;
  /** Current watts. */
  readonly powerW: number | null;
  /** Share of up to the last second in which a kernel ran. */
  readonly utilizationPercent: number | null;
  /** Names such as 'softwarePowerCap'; empty without throttling. */
  readonly throttleReasons: readonly string[] | null;
  /** Memory errors since the driver was loaded, including corrected ones. */
  readonly eccErrors: number | null;
  /** PCIe packets resent since the driver was loaded. */
  readonly pcieReplays: number | null;
  /** Active NVLink-C2C links to the CPU, which replace PCIe for host memory. */
  readonly c2cLinks: number | null;
  /** All NVLinks by index. */
  readonly links: readonly GpuLink[];
}

/** One NVLink of a GPU. */
export interface GpuLink {
  /** Its index on the GPU. */
  readonly index: number;
  /** Whether it is up. */
  readonly active: boolean;
  /** '4.0'. */
  readonly version: string | null;
  /** In one direction. */
  readonly bytesPerSecond: number | null;
  /** PCI bus id of the other end; null for a switch or when unknown. */
  readonly remotePciBusId: string | null;
  /** Whether the other end is an NVSwitch. */
  readonly remoteIsSwitch: boolean;
  /** Replays, recoveries and CRC errors since the driver was loaded. */
  readonly errors: number | null;
}
