// Reads results of other programs, detected by their content.
import { cellsOf, plainLine, tableLine } from '../../printed/plain.js';
import type { Report } from '../result.js';
import { NcclText, ncclJson } from './nccl-tests.js';
import { NvbandwidthText, nvbandwidthJson } from './nvbandwidth.js';
import { OsuText } from './osu.js';
import { foreignReport, type Fields } from './record.js';

export { unknownTime } from './record.js';

/** The supported formats besides gradlink's reports, for messages. */
export const foreignKinds =
  "nccl-tests' output or -J file, nvbandwidth's output or -j file, or OSU's output";

/** A report from another program's JSON; undefined if it is unknown. */
export function foreignJson(value: Fields): Report | undefined {
  return ncclJson(value) ?? nvbandwidthJson(value);
}

/** A report from the tables in a text, with or without launchers' prefixes; undefined without any. */
export function foreignText(text: string): Report | undefined {
  const readers = {
    'nccl-tests': new NcclText(),
    osu: new OsuText(),
    nvbandwidth: new NvbandwidthText(),
  } as const;
  for (const raw of text.split(/\r\n|[\r\n]/)) {
    const line = tableLine(plainLine(raw));
    const cells = cellsOf(line);
    for (const reader of Object.values(readers)) reader.read(line, cells);
  }
  const tools = (['nccl-tests', 'osu', 'nvbandwidth'] as const).filter(
    (tool) => readers[tool].cases.length > 0,
  );
  const [tool] = tools;
  if (tool === undefined) return undefined;
  return foreignReport(
    { tool, version: readers[tool].version },
    tools.flatMap((one) => readers[one].cases),
  );
}
