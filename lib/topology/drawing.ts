// Graphs as text for drawing tools.
import { instanceOf, optionNames, optionsObject } from '../checks.js';
import { Topology } from './topology.js';

/** Options of {@link toDot} and {@link toMermaid}. */
export interface DrawingOptions {
  /** Whether edges carry their weights; true when absent. */
  readonly weights?: boolean;
  /** Whether each rank's edge to itself is drawn; false when absent. */
  readonly selfEdges?: boolean;
}

const drawingNames = optionNames<DrawingOptions>({ weights: true, selfEdges: true });

/** The graph for Graphviz: draw it with `dot -Tsvg`. */
export function toDot(topology: Topology, options?: DrawingOptions): string {
  const given = drawingOptions(topology, options, 'toDot');
  const lines = ranks(topology).map((rank) => `  ${rank};`);
  for (const { from, to, label } of drawn(topology, given)) {
    lines.push(`  ${from} -> ${to}${label === undefined ? '' : ` [label="${label}"]`};`);
  }
  return ['digraph topology {', ...lines, '}', ''].join('\n');
}

/** The graph for Mermaid, which Markdown viewers draw. */
export function toMermaid(topology: Topology, options?: DrawingOptions): string {
  const given = drawingOptions(topology, options, 'toMermaid');
  const lines = ranks(topology).map((rank) => `  r${rank}((${rank}))`);
  for (const { from, to, label } of drawn(topology, given)) {
    lines.push(`  r${from} -->${label === undefined ? '' : `|${label}|`} r${to}`);
  }
  return ['flowchart LR', ...lines, ''].join('\n');
}

function drawingOptions(
  topology: Topology,
  options: DrawingOptions | undefined,
  owner: string,
): DrawingOptions {
  instanceOf(topology, Topology, 'topology', 'a Topology');
  return optionsObject(options, drawingNames, owner);
}

const ranks = (topology: Topology) => Array.from({ length: topology.size }, (_, rank) => rank);

function* drawn(topology: Topology, { weights = true, selfEdges = false }: DrawingOptions) {
  for (const { from, to, weight } of topology.edges()) {
    if (from === to && !selfEdges) continue;
    yield { from, to, label: weights ? String(Number(weight.toPrecision(4))) : undefined };
  }
}
