// What the doctor finds.

/** `ok`: as it should be; `degraded`: present, but slow or limited; `missing`: absent. */
export type FindingStatus = 'ok' | 'degraded' | 'missing';

/** One line of the doctor. */
export interface Finding {
  /** The name for `--require`: `cores`, `openmpi`, `nccl`, `gpu:0`. */
  readonly name: string;
  readonly status: FindingStatus;
  /** The finding, in words with units. */
  readonly text: string;
  /** The remedy; null if none is needed. */
  readonly advice: string | null;
}

/** Version of the JSON layout; raised when a field changes its meaning or is removed. */
export const diagnosisVersion = 1;

export interface Diagnosis {
  readonly diagnosisVersion: typeof diagnosisVersion;
  readonly packageVersion: string;
  /** ISO 8601 in UTC. */
  readonly startedAt: string;
  /** Duration of the diagnosis. */
  readonly seconds: number;
  readonly findings: readonly Finding[];
  readonly topology: Topology;
}

/** A NUMA node with its cores. */
export interface NumaNode {
  readonly node: number;
  /** `0-15,32-47`. */
  readonly cores: string;
  readonly memoryBytes: number | null;
  /** Distance to each node including itself, 10 being itself as in the firmware's table. Empty if unknown. */
  readonly distances: readonly number[];
}

export interface NetworkInterface {
  readonly name: string;
  /** Null if unknown, as in most virtual machines. */
  readonly bitsPerSecond: number | null;
  readonly up: boolean;
  readonly numaNode: number | null;
}

/** A GPU and its link to the host. */
export interface TopologyGpu {
  readonly ordinal: number;
  readonly name: string;
  readonly pciBusId: string;
  readonly numaNode: number | null;
  /** `0-15`; null if unknown. */
  readonly cores: string | null;
  /** `generation 5 x16`; null without NVML. */
  readonly pcieNow: string | null;
  readonly pciePossible: string | null;
  readonly pcieNowBytesPerSecond: number | null;
  readonly pciePossibleBytesPerSecond: number | null;
}

/** The link from one GPU to another. */
export interface TopologyLink {
  readonly from: number;
  readonly to: number;
  /** As in `nvidia-smi topo -m`: `NV18`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`; `?` if unknown. */
  readonly kind: string;
  /** Whether the first GPU accesses the other's memory directly. */
  readonly peerAccess: boolean;
  /** NVLinks that are up, and the expected number; 0 without NVLink. */
  readonly links: number;
  readonly linksPossible: number;
  /** Rate in one direction of the links that are up, and of all; null without NVLink. */
  readonly bytesPerSecond: number | null;
  readonly possibleBytesPerSecond: number | null;
}

/** How the machine's parts are linked. */
export interface Topology {
  readonly nodes: readonly NumaNode[];
  readonly networks: readonly NetworkInterface[];
  readonly gpus: readonly TopologyGpu[];
  readonly links: readonly TopologyLink[];
  /** Why there is no GPU; null if there is one. */
  readonly gpusMissing: string | null;
}
