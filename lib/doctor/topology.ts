// How the machine's parts are linked, from the kernel and, for GPUs, the driver and NVML.
import { join } from 'node:path';

import { linksBetween } from '../measure/machine/gpus.js';
import { pcieRate } from '../measure/machine/gpu-rates.js';
import { machineOf, pcieText } from './gpus.js';
import type { GpusFound, Probed } from './probes.js';
import { namesIn, readText } from './system.js';
import type { NetworkInterface, NumaNode, Topology, TopologyGpu, TopologyLink } from './types.js';

/** The kernel writes -1 for unknown. */
function nodeNumber(text: string | undefined): number | null {
  const value = Number(text ?? -1);
  return Number.isInteger(value) && value >= 0 ? value : null;
}

/** @param folder replaced by tests */
export function readNodes(folder = '/sys/devices/system/node'): NumaNode[] {
  return namesIn(folder)
    .flatMap((name) => {
      const [, number] = /^node(\d+)$/.exec(name) ?? [];
      return number === undefined ? [] : [Number(number)];
    })
    .sort((a, b) => a - b)
    .map((node) => {
      const at = join(folder, `node${String(node)}`);
      const [, kilobytes] = /MemTotal:\s*(\d+) kB/.exec(readText(join(at, 'meminfo')) ?? '') ?? [];
      const distances = readText(join(at, 'distance')) ?? '';
      return {
        node,
        cores: readText(join(at, 'cpulist')) ?? '',
        memoryBytes: kilobytes === undefined ? null : Number(kilobytes) * 1024,
        distances: distances === '' ? [] : distances.split(/\s+/).map(Number),
      };
    });
}

/** @param folder replaced by tests */
export function readNetworks(folder = '/sys/class/net'): NetworkInterface[] {
  return namesIn(folder)
    .filter((name) => name !== 'lo')
    .sort()
    .map((name) => {
      const at = join(folder, name);
      const megabits = Number(readText(join(at, 'speed')) ?? -1);
      return {
        name,
        bitsPerSecond: megabits > 0 ? megabits * 1e6 : null,
        up: readText(join(at, 'operstate')) === 'up',
        numaNode: nodeNumber(readText(join(at, 'device/numa_node'))),
      };
    });
}

function rate(generation: number | null, width: number | null): number | null {
  return generation === null || width === null ? null : (pcieRate(generation, width) ?? null);
}

function topologyGpus({ gpus }: GpusFound): TopologyGpu[] {
  return gpus.map(({ ordinal, name, pciBusId, health }) => {
    const device = join('/sys/bus/pci/devices', pciBusId.toLowerCase());
    const { pcieGeneration = null, pcieWidth = null } = health ?? {};
    const { maxPcieGeneration = null, maxPcieWidth = null } = health ?? {};
    return {
      ordinal,
      name,
      pciBusId,
      numaNode: health?.numaNode ?? nodeNumber(readText(join(device, 'numa_node'))),
      cores: readText(join(device, 'local_cpulist')) ?? null,
      pcieNow: pcieText(pcieGeneration, pcieWidth),
      pciePossible: pcieText(maxPcieGeneration, maxPcieWidth),
      pcieNowBytesPerSecond: rate(pcieGeneration, pcieWidth),
      pciePossibleBytesPerSecond: rate(maxPcieGeneration, maxPcieWidth),
    };
  });
}

function topologyLinks(found: GpusFound): TopologyLink[] {
  const machine = machineOf(found);
  return found.peers.map(({ from, to, access, path }) => {
    const links = linksBetween(machine, from, to);
    const active = links?.active ?? 0;
    return {
      from,
      to,
      kind: active > 0 ? `NV${String(active)}` : (path ?? '?'),
      peerAccess: access,
      links: active,
      linksPossible: links?.expected ?? 0,
      bytesPerSecond: links === undefined ? null : active * links.bytesPerSecond,
      possibleBytesPerSecond: links === undefined ? null : links.expected * links.bytesPerSecond,
    };
  });
}

export function readTopology(gpus: Probed<GpusFound>): Topology {
  const host = { nodes: readNodes(), networks: readNetworks() };
  if (!('found' in gpus)) {
    return {
      ...host,
      gpus: [],
      links: [],
      gpusMissing: gpus.broken ? gpus.reason : (gpus.reason.split(': ')[0] ?? ''),
    };
  }
  const none = gpus.found.gpus.length === 0;
  return {
    ...host,
    gpus: topologyGpus(gpus.found),
    links: topologyLinks(gpus.found),
    gpusMissing: none ? 'the driver shows no GPU to this process' : null,
  };
}
