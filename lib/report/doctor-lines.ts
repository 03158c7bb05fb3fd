// `gradlink doctor` and `gradlink topo` as text.
import type { Diagnosis, Finding, Topology, TopologyLink } from '../doctor/types.js';
import { matrixLines as blocks, tableLines, type Column } from './table.js';
import { bandwidthText } from '../results/units.js';

/** One line per finding, with the remedy below those that are not ok. */
export function doctorLines(
  { findings, topology, packageVersion, seconds }: Diagnosis,
  room = Infinity,
): string[] {
  const width = Math.max(...findings.map(({ name }) => name.length));
  const lines = findings.flatMap(({ name, status, text, advice }) => [
    `${status.padEnd(8)}  ${name.padEnd(width)}  ${text}`,
    ...(advice === null ? [] : [`${' '.repeat(10 + width + 2)}-> ${advice}`]),
  ]);
  const count = (status: Finding['status']): number =>
    findings.filter((finding) => finding.status === status).length;
  return [
    `gradlink ${packageVersion}`,
    ...lines,
    ...(topology.gpus.length > 1 ? ['', ...matrixLines(topology, room)] : []),
    '',
    `${String(count('ok'))} ok, ${String(count('degraded'))} degraded, ${String(count('missing'))} missing; ${seconds.toFixed(2)} s`,
  ];
}

/** NUMA nodes, networks, GPUs and the matrix of links. */
export function topologyLines(topology: Topology, room = Infinity): string[] {
  return [
    ...nodeLines(topology, room),
    ...networkLines(topology, room),
    ...(topology.gpusMissing === null
      ? [
          '',
          ...gpuLines(topology, room),
          '',
          ...matrixLines(topology, room),
          '',
          ...linkLines(topology),
        ]
      : ['', `GPUs: none (${topology.gpusMissing})`]),
  ];
}

/** The possible PCIe link is also described below the table. */
const weights: Readonly<Record<string, number>> = { 'PCIe possible': 1, PCI: 2 };

function columns(titles: readonly string[], right: readonly string[] = []): Column[] {
  return titles.map((title) => {
    const weight = weights[title];
    const align = right.includes(title) ? 'right' : 'left';
    return { title, align, ...(weight === undefined ? {} : { weight }) };
  });
}

function nodeLines({ nodes }: Topology, room: number): string[] {
  if (nodes.length === 0) return ['NUMA nodes: not reported by the kernel'];
  const others = nodes.map(({ node }) => `to ${String(node)}`);
  return blocks(
    columns(['NUMA node', 'cores', 'memory', ...others], ['memory', ...others]),
    nodes.map(({ node, cores, memoryBytes, distances }) => [
      String(node),
      cores,
      memoryBytes === null ? '' : `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`,
      ...distances.map(String),
    ]),
    room,
  );
}

function networkLines({ networks }: Topology, room: number): string[] {
  if (networks.length === 0) return [];
  return [
    '',
    ...tableLines(
      columns(['network', 'state', 'speed', 'NUMA node'], ['speed']),
      networks.map(({ name, up, bitsPerSecond, numaNode }) => [
        name,
        up ? 'up' : 'down',
        bitsPerSecond === null ? 'unknown' : `${String(bitsPerSecond / 1e9)} Gbit/s`,
        numaNode === null ? '' : String(numaNode),
      ]),
      room,
    ),
  ];
}

function gpuLines({ gpus }: Topology, room: number): string[] {
  const link = (text: string | null, bytesPerSecond: number | null): string =>
    [text, ...(bytesPerSecond === null ? [] : [`(${bandwidthText(bytesPerSecond)})`])]
      .filter((part) => part !== null)
      .join(' ');
  return tableLines(
    columns(['GPU', 'name', 'PCI', 'NUMA node', 'PCIe now', 'PCIe possible']),
    gpus.map((gpu) => [
      `gpu:${String(gpu.ordinal)}`,
      gpu.name,
      gpu.pciBusId,
      gpu.numaNode === null ? '' : String(gpu.numaNode),
      link(gpu.pcieNow, gpu.pcieNowBytesPerSecond),
      link(gpu.pciePossible, gpu.pciePossibleBytesPerSecond),
    ]),
    room,
  );
}

const legend: Readonly<Record<string, string>> = {
  NV: 'NV# = number of NVLinks',
  PIX: 'PIX = one PCIe switch',
  PXB: 'PXB = several PCIe switches',
  PHB: "PHB = the processor's PCIe bridge",
  NODE: 'NODE = bridges of one NUMA node',
  SYS: 'SYS = between processors',
  '?': '? = unknown',
};

/** As in `nvidia-smi topo -m`: the link from the row's GPU to the column's. */
function matrixLines({ gpus, links }: Topology, room: number): string[] {
  const kind = (from: number, to: number): string => {
    if (from === to) return 'X';
    const link = links.find((one) => one.from === from && one.to === to);
    if (link === undefined) return '?';
    return link.peerAccess ? link.kind : `${link.kind}*`;
  };
  const names = gpus.map(({ ordinal }) => `gpu:${String(ordinal)}`);
  const kinds = new Set(links.map((link) => link.kind.replace(/^NV\d+$/, 'NV')));
  const staged = links.some(({ peerAccess }) => !peerAccess);
  const words = [
    ...Object.entries(legend).flatMap(([name, text]) => (kinds.has(name) ? [text] : [])),
    ...(staged ? ['* = no peer access: copies go through the host'] : []),
  ];
  return [
    ...blocks(
      columns(['', ...names, 'cores', 'NUMA node']),
      gpus.map(({ ordinal, cores, numaNode }, row) => [
        names[row] ?? '',
        ...gpus.map((other) => kind(ordinal, other.ordinal)),
        cores ?? '',
        numaNode === null ? '' : String(numaNode),
      ]),
      room,
    ),
    ...(words.length === 0 ? [] : [words.join(', ')]),
  ];
}

function linkLines({ links }: Topology): string[] {
  const wired = links.filter(({ from, to, linksPossible }) => from < to && linksPossible > 0);
  const text = ({ from, to, ...link }: TopologyLink): string => {
    const down = link.linksPossible - link.links;
    const now = bandwidthText(link.bytesPerSecond ?? 0);
    const possible = bandwidthText(link.possibleBytesPerSecond ?? 0);
    return `gpu:${String(from)} - gpu:${String(to)}: ${now} each way now${down > 0 ? `, ${possible} possible (${String(down)} NVLinks are down)` : ', the maximum'}`;
  };
  return wired.map(text);
}
