// Rates, step times and losses in free text as training programs print them: a small table of forms over tokens.
import { tokensOf, type Token } from '../printed/tokens.js';
import { rateUnit, rateWords, thingOf, timeUnit, type Unit } from '../printed/units.js';

/** One number of a run, the next point of its line. */
export interface Figure {
  /** Figures with the same name and dimension form a series. */
  readonly name: string;
  readonly value: number;
  readonly unit: Unit;
}

export const noUnit: Unit = { unit: '', dimension: '', factor: 1 };

interface Read {
  readonly base: 'throughput' | 'bandwidth' | 'compute' | 'time per step';
  readonly unit: Unit;
  /** The factor of the unit: 1000 for `kit/s`. */
  readonly count: number;
  readonly perDevice: boolean;
  /** Seconds per item instead of items per second: tqdm inverts its figure when slow. */
  readonly inverse?: boolean;
  readonly end: number;
}

const devices: ReadonlySet<string> = new Set(
  'gpu gpus device devices worker workers card chip rank core node process replica cpu cpus tpu npu'.split(
    ' ',
  ),
);
const counters: ReadonlySet<string> = new Set(
  'iter iters iteration iterations step steps batch batches epoch minibatch'.split(' '),
);
/** Label words that only repeat the unit. */
const plainWords: ReadonlySet<string> = new Set(
  'speed throughput rate bandwidth bw performance perf ips is at of the in global current cur'.split(
    ' ',
  ),
);
const lossBefore: ReadonlySet<string> = new Set(
  'lm train training val validation valid eval evaluation test dev total avg average mean mtp running'.split(
    ' ',
  ),
);
const lossBehind: ReadonlySet<string> = new Set(['step', 'epoch', 'avg', 'mean', 'train', 'val']);

/** Whether a label's word marks a rate. */
const isPlain = (word: string): boolean => plainWords.has(word) || word.endsWith('bw');

/** The tokens of a line with lookups for its readers. */
class Line {
  readonly tokens: readonly Token[];
  private isCounted: boolean | undefined;

  constructor(line: string) {
    this.tokens = tokensOf(line);
  }

  mark(at: number, ...texts: readonly string[]): boolean {
    const token = this.tokens[at];
    return token?.kind === 'mark' && texts.includes(token.text);
  }

  word(at: number): string | undefined {
    const token = this.tokens[at];
    return token?.kind === 'word' ? token.text : undefined;
  }

  exact(at: number): string | undefined {
    const token = this.tokens[at];
    return token?.kind === 'word' ? token.exact : undefined;
  }

  number(at: number): number | undefined {
    const token = this.tokens[at];
    return token?.kind === 'number' ? token.value : undefined;
  }

  /** The number of the label ending before `at`, and whether a sign separates them: `: 3`, `=3`, `': 3`, ` 3`. */
  labelled(at: number): { readonly at: number; readonly signed: boolean } | undefined {
    let signed = false;
    for (let place = at; place < at + 4; place += 1) {
      if (this.number(place) !== undefined) return { at: place, signed };
      if (this.mark(place, ':', '=')) signed = true;
      else if (!this.mark(place, "'", '"', '`', '|')) return undefined;
    }
    return undefined;
  }

  /** Up to four words right before `at`: `running avg`. */
  wordsBefore(at: number): string[] {
    const found: string[] = [];
    for (let place = at - 1; found.length < 4; place -= 1) {
      const word = this.word(place);
      // It is the unit of an earlier number: `2s 20ms/step`.
      if (word !== undefined && timeUnit(word) !== undefined) break;
      if (word !== undefined) found.unshift(word);
      else if (!this.mark(place, '_')) break;
    }
    return found;
  }

  /** Whether the line, or the part before a position, names a step: `step 7`, `Batch [20]`, `10/100`. */
  get counted(): boolean {
    this.isCounted ??= this.tokens.some((token, at) => {
      if (token.kind === 'word' && counters.has(token.text)) {
        if (
          [1, 2, 3].some(
            (far) => this.number(at + far) !== undefined && this.marksBetween(at, at + far),
          )
        )
          return true;
        return this.number(at - 1) !== undefined && this.mark(at - 2, '/');
      }
      const whole = (place: number): boolean => Number.isInteger(this.number(place) ?? NaN);
      if (!this.mark(at, '/') || !whole(at - 1) || !whole(at + 1)) return false;
      return rateWords.dataRate(this.exact(at + 2) ?? '') === undefined;
    });
    return this.isCounted;
  }

  private marksBetween(from: number, to: number): boolean {
    return this.tokens.slice(from + 1, to).every(({ kind }) => kind === 'mark');
  }
}

/** The next word after `/`, `per` or `_per_`. */
function perAt(line: Line, at: number): number | undefined {
  if (line.mark(at, '/')) return at + 1;
  const place = line.mark(at, '_') ? at + 1 : at;
  if (line.word(place) !== 'per') return undefined;
  return line.mark(place + 1, '_') ? place + 2 : place + 1;
}

/** The end of `/GPU` or ` per GPU(s)`; undefined without one. */
function deviceAt(line: Line, at: number): number | undefined {
  const place = perAt(line, at);
  return place !== undefined && devices.has(line.word(place) ?? '') ? place + 1 : undefined;
}

/** `images/sec`, `tokens per GPU per second`, `GB/s per gpu`, `Gbps`, `TFLOP/s/GPU`, `ms/step`. */
function readUnit(line: Line, at: number): Read | undefined {
  const exact = line.exact(at);
  if (exact === undefined) return undefined;
  const whole = rateWords.wholeRate(exact);
  if (whole !== undefined) {
    const seconds = perAt(line, at + 1);
    const isTime = seconds !== undefined && timeUnit(line.word(seconds) ?? '')?.unit === 's';
    const end = isTime ? seconds + 1 : at + 1;
    const device = deviceAt(line, end);
    const base = whole.dimension === 'bytes/s' ? 'bandwidth' : 'compute';
    return { base, unit: whole, count: 1, perDevice: device !== undefined, end: device ?? end };
  }
  const before = deviceAt(line, at + 1);
  const divisor = perAt(line, before ?? at + 1);
  if (divisor === undefined) return undefined;
  const below = line.word(divisor) ?? '';
  const time = timeUnit(exact);
  if (time !== undefined) {
    const of = thingOf(below);
    if (of?.count !== 1) return undefined;
    const read = { count: 1, perDevice: false, end: divisor + 1 };
    if (below === 'it') return { ...read, base: 'throughput', unit: time, inverse: true };
    return { ...read, base: 'time per step', unit: time };
  }
  if (timeUnit(below)?.unit !== 's') return undefined;
  const behind = deviceAt(line, divisor + 1);
  const read = { perDevice: (before ?? behind) !== undefined, end: behind ?? divisor + 1 };
  const data = rateWords.dataRate(exact);
  if (data !== undefined) return { ...read, base: 'bandwidth', unit: data, count: 1 };
  const of = thingOf(exact);
  if (of === undefined) return undefined;
  return { ...read, base: 'throughput', unit: rateUnit(of.thing), count: of.count };
}

function figureOf(read: Read, value: number, words: readonly string[], more?: string): Figure {
  const { base, unit, count, perDevice, inverse = false } = read;
  const parts = words.filter((word) => !plainWords.has(word) && !counters.has(word));
  const name = [
    perDevice ? `${base} per device` : base,
    ...(parts.length === 0 ? [] : [parts.join(' ')]),
    ...(more === undefined ? [] : [more]),
  ].join(', ');
  if (inverse) return { name, value: 1 / (value * unit.factor), unit: rateUnit('it') };
  return { name, value: value * count, unit };
}

/** `step time: 350 ms`, `time per iteration 0.35 s`; a bare time may be the total. */
function stepTime(line: Line, at: number, value: number): Figure | undefined {
  const unit = timeUnit(line.exact(at + 1) ?? '');
  const words = line.wordsBefore(line.mark(at - 1, ':', '=') ? at - 1 : at);
  if (unit === undefined || !isStepTime(words)) return undefined;
  return { name: 'time per step', value, unit };
}

const isStepTime = (words: readonly string[]): boolean =>
  words.includes('time') && words.some((word) => counters.has(word) && word !== 'epoch');

/** `123.4 img/sec`, `350 +- 1.2 images/s`, `5ms/step`, `12.3it/s`. */
function numberFirst(line: Line, at: number): Figure | undefined {
  const value = line.number(at);
  if (value === undefined || line.mark(at - 1, '+-')) return undefined;
  const tolerated = line.mark(at + 1, '+-') && line.number(at + 2) !== undefined;
  const read = readUnit(line, tolerated ? at + 3 : at + 1);
  if (read === undefined) return stepTime(line, at, value);
  // `1 images/sec: 305.3`: the number belongs to a label before it.
  if (line.labelled(read.end)?.signed === true) return undefined;
  const signed = line.mark(at - 1, ':', '=');
  const words = line.wordsBefore(signed ? at - 1 : at);
  const isProgress = read.unit.dimension === 'it/s' || read.inverse === true;
  const isStep = read.base === 'time per step';
  const isTold = signed && words.length > 0 && (read.base !== 'bandwidth' || words.some(isPlain));
  if (!isProgress && !isStep && !isTold && !words.some(isPlain) && !line.counted) return undefined;
  return figureOf(read, value, signed || words.length === 1 ? words : []);
}

/** After a unit, past ` on 4 GPU(s)` up to the sign. */
function pastDevices(line: Line, from: number): number {
  for (let at = from; at < from + 8; at += 1) {
    if (line.mark(at, ':', '=')) return at;
    const counts = line.word(at) !== undefined || line.number(at) !== undefined;
    if (!counts && !line.mark(at, '(', ')')) break;
  }
  return from;
}

/** `images/sec: 305.3`, `Total img/sec on 4 GPU(s): 422.8`, `train_samples_per_second': 65.1`, `ms/batch 12.3`. */
function unitFirst(line: Line, at: number): Figure | undefined {
  const read = readUnit(line, at);
  if (read === undefined) return undefined;
  const before = line.wordsBefore(at);
  const counted = line.number(at - 1) !== undefined;
  const place = line.labelled(pastDevices(line, read.end));
  if (place === undefined) return undefined;
  const value = line.number(place.at);
  if (value === undefined || (!place.signed && (counted || !line.counted))) return undefined;
  // A number with its own unit is ambiguous: `samples/s: 3 images/s`.
  if (readUnit(line, place.at + 1) !== undefined) return undefined;
  const isMean =
    read.perDevice &&
    line.mark(place.at + 1, '+-') &&
    !counted &&
    before.length === 0 &&
    !line.counted;
  return figureOf(read, value, before, isMean ? 'mean' : undefined);
}

/** `elapsed time per iteration (ms): 620.3`, `throughput per GPU (TFLOP/s/GPU): 400.1`. */
function unitInBrackets(line: Line, at: number): Figure | undefined {
  if (!line.mark(at, '(')) return undefined;
  const words = line.wordsBefore(at);
  const end = [at + 2, at + 4, at + 6].find((place) => line.mark(place, ')'));
  if (end === undefined || words.length === 0) return undefined;
  const place = line.labelled(end + 1);
  const value = place?.signed === true ? line.number(place.at) : undefined;
  if (value === undefined) return undefined;
  const read = readUnit(line, at + 1);
  if (read?.end === end)
    return figureOf(
      read,
      value,
      words.filter((word) => word !== 'per' && !devices.has(word)),
    );
  const unit = timeUnit(line.exact(at + 1) ?? '');
  if (unit === undefined || end !== at + 2 || !isStepTime(words)) return undefined;
  return { name: 'time per step', value, unit };
}

/** `loss: 0.5`, `lm loss: 1.04E+01`, `val_loss=0.3`, `train_loss_step': 0.3`; no `loss scale`, no `loss 3 %`. */
function loss(line: Line, at: number): Figure | undefined {
  if (line.word(at) !== 'loss') return undefined;
  const glued = line.mark(at - 1, '_', '/', '-');
  const before = line.wordsBefore(line.mark(at - 1, '/') ? at - 1 : at);
  const qualifiers: string[] = [];
  for (const word of before.toReversed()) {
    if (!glued && !lossBefore.has(word)) break;
    qualifiers.unshift(word);
  }
  let end = at + 1;
  const behind = line.mark(end, '_', '/') ? line.word(end + 1) : undefined;
  if (behind !== undefined) {
    if (!lossBehind.has(behind)) return undefined;
    end += 2;
  }
  const place = line.labelled(end);
  const value = place === undefined ? undefined : line.number(place.at);
  if (place === undefined || value === undefined || line.mark(place.at + 1, '%')) return undefined;
  const name = [...qualifiers, 'loss', ...(behind === undefined ? [] : [behind])].join(' ');
  return { name, value, unit: noUnit };
}

const forms = [numberFirst, unitFirst, unitInBrackets, loss] as const;

/** The figures of a line of free text; of each name the first. */
export function figuresOfText(text: string): Figure[] {
  const line = new Line(text);
  const found = line.tokens.flatMap((_, at) =>
    forms.map((form) => form(line, at)).filter((figure) => figure !== undefined),
  );
  const names = new Set<string>();
  return found.filter(({ name, unit }) => {
    const key = `${name} ${unit.dimension}`;
    return !names.has(key) && names.add(key);
  });
}
