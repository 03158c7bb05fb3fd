// The measuring commands by the name in their reports. A new one is a file with its record, and a line here.
import type { Report } from '../results/result.js';
import { checkTool } from './check-lines.js';
import { collectivesTool } from './collectives-table.js';
import { ddpTool } from './ddp-tables.js';
import { gpuTool } from './gpu-table.js';
import { storeTool } from './mxnet-lines.js';
import { neighborsTool } from './neighbors-table.js';
import { p2pTool } from './p2p-tables.js';
import { pairsTool } from './pairs-table.js';
import type { Tool } from './tool.js';
import { trainTool } from './train-tables.js';

/** With a shared name, the first that owns the report applies. */
const tools: readonly Tool[] = [
  checkTool,
  neighborsTool,
  collectivesTool,
  p2pTool,
  pairsTool,
  ddpTool,
  trainTool,
  gpuTool,
  storeTool,
];

/** The tool of a report; unknown ones get `measure`'s, whose summary suits any case. */
export function toolOf(report: Report): Tool {
  const found = tools.find(
    ({ name, owns }) => name === report.run.tool && owns?.(report) !== false,
  );
  return found ?? storeTool;
}
