// What the doctor finds.

/** `ok`: as it should be; `degraded`: there, but slower or less than it could be; `missing`: not there. */
export type FindingStatus = 'ok' | 'degraded' | 'missing';

/** One line. */
export interface Finding {
  /** What `--require` takes: `cores`, `openmpi`, `nccl`, `gpu:0`. */
  readonly name: string;
  readonly status: FindingStatus;
  /** What was found, in words with units. */
  readonly text: string;
  /** What to do about it; null where nothing needs doing. */
  readonly advice: string | null;
}

/** Layout of the JSON; raised when a field changes its meaning or goes away. */
export const diagnosisVersion = 1;

export interface Diagnosis {
  readonly diagnosisVersion: typeof diagnosisVersion;
  readonly packageVersion: string;
  /** ISO 8601 in UTC. */
  readonly startedAt: string;
  /** What looking took. */
  readonly seconds: number;
  readonly findings: readonly Finding[];
  readonly topology: Topology;
}

/** A part of the host's memory with the cores that are near to it. */
export interface NumaNode {
  readonly node: number;
  /** `0-15,32-47`. */
  readonly cores: string;
  readonly memoryBytes: number | null;
  /** To each node, itself included; 10 is itself, as in the firmware's table. Empty where the kernel does not say. */
  readonly distances: readonly number[];
}

export interface NetworkInterface {
  readonly name: string;
  /** Null where the driver does not say, as in most virtual machines. */
  readonly bitsPerSecond: number | null;
  readonly up: boolean;
  readonly numaNode: number | null;
}

/** A GPU and its way to the host. */
export interface TopologyGpu {
  readonly ordinal: number;
  readonly name: string;
  readonly pciBusId: string;
  readonly numaNode: number | null;
  /** `0-15`; null where the kernel does not say. */
  readonly cores: string | null;
  /** `generation 5 x16`; null where NVML does not say. */
  readonly pcieNow: string | null;
  readonly pciePossible: string | null;
  readonly pcieNowBytesPerSecond: number | null;
  readonly pciePossibleBytesPerSecond: number | null;
}

/** The way from one GPU to another. */
export interface TopologyLink {
  readonly from: number;
  readonly to: number;
  /** As `nvidia-smi topo -m` has it: `NV18`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`; `?` where nobody says. */
  readonly kind: string;
  /** Whether the first reaches the other's memory directly. */
  readonly peerAccess: boolean;
  /** NVLinks that are up, and that should be; 0 without. */
  readonly links: number;
  readonly linksPossible: number;
  /** Of these links in one direction, those that are up and all; null without NVLinks. */
  readonly bytesPerSecond: number | null;
  readonly possibleBytesPerSecond: number | null;
}

/** How the parts of the machine are linked. */
export interface Topology {
  readonly nodes: readonly NumaNode[];
  readonly networks: readonly NetworkInterface[];
  readonly gpus: readonly TopologyGpu[];
  readonly links: readonly TopologyLink[];
  /** Why there is no GPU; null where there is one. */
  readonly gpusMissing: string | null;
}
