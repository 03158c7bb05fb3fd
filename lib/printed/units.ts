// Units as programs print them, with dimension and factor.

export interface Unit {
  /** Its spelling here. */
  readonly unit: string;
  /** Units of the same dimension can be converted. */
  readonly dimension: string;
  /** In the dimension's base: seconds, bytes per second, items per second. */
  readonly factor: number;
}

const times: Readonly<Record<string, Unit>> = Object.fromEntries(
  [
    ['ns', 1e-9, ['ns', 'nsec', 'nanoseconds']],
    ['us', 1e-6, ['us', 'µs', 'μs', 'usec', 'usecs', 'microseconds']],
    ['ms', 1e-3, ['ms', 'msec', 'msecs', 'millis', 'milliseconds']],
    ['s', 1, ['s', 'sec', 'secs', 'second', 'seconds']],
  ].flatMap(([unit, factor, spellings]) =>
    (spellings as string[]).map((one) => [
      one,
      { unit: unit as string, dimension: 'time', factor: factor as number },
    ]),
  ),
);

export function timeUnit(text: string): Unit | undefined {
  return Object.hasOwn(times, text) ? times[text] : undefined;
}

/** Names of counted items. */
const things: ReadonlyMap<string, string> = new Map(
  [
    ['images', 'img', 'imgs', 'image'],
    ['samples', 'sample'],
    ['tokens', 'token', 'tok', 'toks'],
    ['sentences', 'sentence'],
    ['sequences', 'sequence', 'seq', 'seqs'],
    ['examples', 'example'],
    ['words', 'word'],
    ['frames', 'frame'],
    ['records', 'record'],
    ['rows', 'row'],
    ['items', 'item'],
    ['graphs', 'graph'],
    ['messages', 'message', 'msg', 'msgs'],
    ['requests', 'request', 'req', 'reqs'],
    ['batches', 'batch'],
    ['steps', 'step'],
    ['it', 'its', 'iter', 'iters', 'iteration', 'iterations'],
  ].flatMap(([unit = '', ...others]) => [unit, ...others].map((one) => [one, unit] as const)),
);

/** `samples`, `kit`, `Ktokens`: the item and its factor. */
export function thingOf(
  exact: string,
): { readonly thing: string; readonly count: number } | undefined {
  const whole = things.get(exact.toLowerCase());
  if (whole !== undefined) return { thing: whole, count: 1 };
  const count = { k: 1e3, K: 1e3, M: 1e6, G: 1e9 }[exact.charAt(0)];
  const scaled = things.get(exact.slice(1));
  return count === undefined || scaled === undefined ? undefined : { thing: scaled, count };
}

export function rateUnit(thing: string): Unit {
  return { unit: `${thing}/s`, dimension: `${thing}/s`, factor: 1 };
}

const powers: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

const dataWord = /^([KMGT]i|[kKMGT])?(B|[Bb]ytes?|b|[Bb]its?)$/;

/** Bytes or bits: `GB`, `GiB`, `Gbit`, `MBytes`. `gb` is ambiguous, so it is neither. */
function dataOf(exact: string): { readonly text: string; readonly bytes: number } | undefined {
  const [, power = '', what] = dataWord.exec(exact) ?? [];
  if (what === undefined) return undefined;
  const bits = what.startsWith('b') && !what.startsWith('byte');
  const prefix = power === 'K' ? 'k' : power;
  return {
    text: `${prefix}${bits ? 'bit' : 'B'}`,
    bytes: (powers[power] ?? 1) / (bits ? 8 : 1),
  };
}

function dataRate(exact: string): Unit | undefined {
  const data = dataOf(exact);
  if (data === undefined) return undefined;
  return { unit: `${data.text}/s`, dimension: 'bytes/s', factor: data.bytes };
}

/** A whole rate in one word: `Gbps`, `MBps`, `TFLOPS`. */
function wholeRate(exact: string): Unit | undefined {
  if (exact.endsWith('ps')) {
    const data = dataRate(exact.slice(0, -2));
    if (data !== undefined) return data;
  }
  const [, power = ''] = /^([MGTP])(?:FLOP|flop)(?:[Ss]|ps)?$/.exec(exact) ?? [];
  if (power === '') return undefined;
  const factor = { M: 1e6, G: 1e9, T: 1e12, P: 1e15 }[power] ?? 1;
  return { unit: `${power}FLOP/s`, dimension: 'FLOP/s', factor };
}

export const rateWords = { dataRate, wholeRate } as const;

/** The unit of a column's title or a label's parentheses: `us`, `GB/s`, `Messages/s`, `MB/sec`. */
export function unitNamed(text: string): Unit | undefined {
  const [first = '', second, ...more] = text.split('/');
  if (more.length > 0) return undefined;
  if (second === undefined) return timeUnit(first) ?? wholeRate(first);
  if (timeUnit(second)?.unit !== 's') return undefined;
  const thing = thingOf(first);
  return dataRate(first) ?? (thing?.count === 1 ? rateUnit(thing.thing) : undefined);
}
