// The OSU micro-benchmarks' tables.
import { osuHeading, osuRow, type OsuColumn, type OsuHeading } from '../../printed/osu.js';
import type { CaseResult } from '../result.js';
import { foreignCase } from './record.js';

/** `avg latency` in seconds is `avgLatencySeconds`. */
function valueName(name: string, unit: string): string {
  const words = `${name} ${unit}`.split(/[^a-z0-9]+/i).filter((word) => word !== '');
  return words
    .map((word, at) =>
      at === 0 ? word.toLowerCase() : word.charAt(0).toUpperCase() + word.slice(1),
    )
    .join('');
}

const baseUnits: Readonly<Record<string, string>> = {
  time: 'Seconds',
  'bytes/s': 'BytesPerSecond',
  'messages/s': 'PerSecond',
};

export class OsuText {
  readonly cases: CaseResult[] = [];
  version: string | undefined;
  private heading: OsuHeading | undefined;
  private name = 'osu';
  private datatype: string | undefined;

  read(line: string, cells: readonly string[]): void {
    if (cells[0]?.startsWith('#') === true) {
      this.told(line);
      return;
    }
    const { heading } = this;
    const row = heading === undefined ? undefined : osuRow(cells, heading);
    if (heading === undefined || row === undefined) {
      if (cells.length > 0) this.heading = undefined;
      return;
    }
    const figures = heading.columns.flatMap((column, at) => {
      const value = row.values[at];
      const { unit } = column;
      return unit === undefined || value === undefined
        ? []
        : [{ column, value: value * unit.factor, dimension: unit.dimension }];
    });
    const [first] = figures;
    if (first === undefined) return;
    const bytes = row.bytes ?? 0;
    const isRate = first.dimension === 'bytes/s';
    if (!isRate && first.dimension !== 'time') return;
    // A rate of 0 has no time.
    if (isRate && !(first.value > 0)) return;
    const seconds = isRate ? bytes / first.value : first.value;
    const rate = isRate ? first.value : seconds > 0 ? bytes / seconds : 0;
    const failed = cells.some((cell) => cell.toLowerCase() === 'fail');
    const checked = failed || cells.some((cell) => cell.toLowerCase() === 'pass');
    this.cases.push(
      foreignCase({
        name: this.name,
        parameters: {
          ...(row.bytes === null ? {} : { bytes }),
          ...(this.datatype === undefined ? {} : { dtype: this.datatype }),
        },
        samplesSeconds: [seconds],
        bytes,
        algorithm: rate,
        bus: rate,
        formula: isRate ? 'as OSU printed it' : 'size / t',
        // It only tells that there are errors, not how many.
        wrong: checked ? Number(failed) : null,
        values: Object.fromEntries(
          figures
            .slice(1)
            .map(({ column, value, dimension }) => [nameOf(column, dimension), value]),
        ),
      }),
    );
  }

  private told(line: string): void {
    this.heading = osuHeading(line) ?? this.heading;
    const [, title, , version] =
      /^#\s{0,8}((?:OSU|OMB)\s.{1,80}?)(\s+Test)?(?:\s+v(\d[\w.]{0,20}))?\s*$/.exec(line) ?? [];
    if (title !== undefined) {
      this.name = title.toLowerCase().replaceAll(/\s+/g, ' ');
      this.version = version ?? this.version;
      this.datatype = undefined;
    }
    this.datatype = /^#\s{0,8}Datatype: (\w{1,40})/.exec(line)?.[1] ?? this.datatype;
  }
}

function nameOf({ name }: OsuColumn, dimension: string): string {
  return valueName(name === 'rate' ? 'messages' : name, baseUnits[dimension] ?? dimension);
}
