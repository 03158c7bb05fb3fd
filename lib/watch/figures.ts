// Figures in what a run prints: the lines of gradlink's own tools and of those that it stands in for.

/** One number of a run, the next point of its line. */
export interface Figure {
  /** Of the same name and unit are those of one line. */
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

interface Pattern {
  readonly expression: RegExp;
  readonly read: (groups: Readonly<Record<string, string>>) => Figure[];
}

const patterns: readonly Pattern[] = [
  {
    // MXNet's bandwidth tool and `gradlink measure`.
    expression: /iter \d+, (?<seconds>[\d.e+-]+) sec, (?<rate>[\d.e+-]+) GB\/sec per gpu/,
    read: ({ rate = '' }) => [{ name: 'bandwidth per device', value: Number(rate), unit: 'GB/s' }],
  },
  {
    // nccl-tests and `gradlink collectives`: size, count, type, redop, root, time, algbw, busbw.
    expression:
      /^\s*(?:\[\d+\]\s*)?\d+\s+\d+\s+[a-z]\w*\s+\w+\s+-?\d+\s+[\d.]+\s+[\d.]+\s+(?<bus>[\d.]+)\s/,
    read: ({ bus = '' }) => [
      { name: 'bus bandwidth, out of place', value: Number(bus), unit: 'GB/s' },
    ],
  },
  {
    // Benchmarks of training: `Iter #3: 123.4 img/sec per GPU`, `step 7 ... 456.7 images/s`.
    expression:
      /\b(?:iter|iteration|step|batch)\b[^\d\n]{0,3}\d+\b[^\n]{0,1000}?(?<![\d.])(?<rate>\d[\d.]{0,30}(?:e[+-]?\d{1,3})?) ?(?<what>img|images?|samples?|tokens?|sentences?)(?:\/|\s{1,8}per\s{1,8})s(?:ec(?:ond)?)?\b/i,
    read: ({ rate = '', what = '' }) => [
      { name: 'throughput', value: Number(rate), unit: `${plural(what.toLowerCase())}/s` },
    ],
  },
  {
    expression: /\bloss\b[^\d\n-]{0,3}(?<loss>-?\d[\d.]*(?:e[+-]?\d+)?)/i,
    read: ({ loss = '' }) => [{ name: 'loss', value: Number(loss), unit: '' }],
  },
];

function plural(what: string): string {
  if (what === 'img') return 'images';
  return what.endsWith('s') ? what : `${what}s`;
}

/** No run prints its figures behind so many letters; what is longer is data. */
const mostLetters = 4096;

/** The figures of one line of text; none where it has none that is known. */
export function figuresIn(text: string): Figure[] {
  const line = text.slice(0, mostLetters);
  return patterns
    .flatMap(({ expression, read }) => {
      const match = expression.exec(line);
      return match === null ? [] : read({ ...match.groups });
    })
    .filter(({ value }) => Number.isFinite(value));
}

/** The points of each line that a run draws, in the order in which the lines began. */
export class Figures {
  private readonly points = new Map<string, { readonly unit: string; readonly values: number[] }>();

  /** @returns whether there was a figure in it */
  add(line: string): boolean {
    const found = figuresIn(line);
    for (const { name, value, unit } of found) {
      const key = JSON.stringify([name, unit]);
      const line = this.points.get(key) ?? { unit, values: [] };
      line.values.push(value);
      this.points.set(key, line);
    }
    return found.length > 0;
  }

  get lines(): readonly {
    readonly name: string;
    readonly unit: string;
    readonly values: readonly number[];
  }[] {
    return [...this.points].map(([key, { unit, values }]) => {
      const [name = ''] = JSON.parse(key) as string[];
      return { name, unit, values };
    });
  }
}
