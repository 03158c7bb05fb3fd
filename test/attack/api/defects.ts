// One defect in the arguments of a right call.
import type { Random } from '../support/random.js';

/** What a getter of ours throws: it comes back as it is. */
export class OwnError extends Error {}

export interface Defect {
  readonly what: string;
  readonly args: readonly unknown[];
}

type Typed = Float32Array | Int32Array;
const isArray = (value: unknown): value is Typed =>
  ArrayBuffer.isView(value) && !(value instanceof DataView);
const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  [Object.prototype, null].includes(Object.getPrototypeOf(value) as null);

const throwing = () =>
  new Proxy(
    {},
    {
      get: () => {
        throw new OwnError('a getter');
      },
    },
  );

const anything: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  NaN: () => NaN,
  '-1': () => -1,
  '0.5': () => 0.5,
  '2 ** 31': () => 2 ** 31,
  '2 ** 53': () => 2 ** 53,
  '1e300': () => 1e300,
  '-Infinity': () => -Infinity,
  bigint: () => 10n,
  symbol: () => Symbol('x'),
  'empty string': () => '',
  string: () => 'x',
  '{}': () => ({}),
  '[]': () => [],
  'sparse array': () => new Array<unknown>(3),
  'object without prototype': () => Object.create(null) as object,
  'throwing object': throwing,
  function: () => () => 0,
  date: () => new Date(0),
  map: () => new Map(),
  promise: () => Promise.resolve(0),
  'empty typed array': () => new Float32Array(0),
  'array of symbols': () => [Symbol('x')],
  'array of null': () => [null],
  DataView: () => new DataView(new ArrayBuffer(8)),
  ArrayBuffer: () => new ArrayBuffer(8),
};

function copied(array: Typed, buffer: ArrayBuffer | SharedArrayBuffer): Typed {
  const made = new (array.constructor as Float32ArrayConstructor)(buffer);
  made.set(array.subarray(0, made.length));
  return made;
}

const ofArrays: Readonly<Record<string, (array: Typed) => unknown>> = {
  detached: (array) => {
    const copy = array.slice();
    structuredClone(copy.buffer, { transfer: [copy.buffer] });
    return copy;
  },
  resizable: (array) =>
    copied(array, new (ArrayBuffer as never as new (n: number, o: object) => ArrayBuffer)(array.byteLength, { maxByteLength: array.byteLength + 64 })), // prettier-ignore
  growable: (array) =>
    copied(array, new (SharedArrayBuffer as never as new (n: number, o: object) => SharedArrayBuffer)(array.byteLength, { maxByteLength: array.byteLength + 64 })), // prettier-ignore
  shared: (array) => copied(array, new SharedArrayBuffer(array.byteLength)),
  'Proxy of the array': (array) => new Proxy(array, {}),
  'DataView of the same': (array) => new DataView(array.buffer, array.byteOffset),
  'length of its own': (array) =>
    Object.defineProperty(array.slice(), 'length', { value: 2 ** 30 }),
  'longer by one': (array) => new (array.constructor as Float32ArrayConstructor)(array.length + 1),
  'shorter by one': (array) => array.slice(1),
  'other type': (array) =>
    (array as unknown) instanceof Float64Array
      ? new Int32Array(array.length)
      : new Float64Array(array.length),
  Uint8ClampedArray: (array) => new Uint8ClampedArray(array.length),
  'plain numbers': (array) => Array.from(array as ArrayLike<unknown>),
};

/** Where a defect can be: an argument, an option, an item of a list, whole or in a property of it. */
interface Slot {
  readonly name: string;
  readonly value: unknown;
  readonly put: (value: unknown) => unknown[];
}

function slotsOf(args: readonly unknown[]): Slot[] {
  return args.flatMap((arg, i): Slot[] => {
    const name = `argument ${String(i)}`;
    const put = (value: unknown) => args.with(i, value);
    const whole: Slot = { name, value: arg, put };
    if (isPlain(arg)) {
      const inner = Object.keys(arg).map((key): Slot => {
        const within = (value: unknown) => put({ ...arg, [key]: value });
        return { name: `${name}.${key}`, value: arg[key], put: within };
      });
      const unknown: Slot = {
        name: `${name} with an unknown option`,
        value: undefined,
        put: (value) => put({ ...arg, unheardOf: value }),
      };
      return [whole, ...inner, unknown];
    }
    if (!Array.isArray(arg)) return [whole];
    const items = arg.map((value: unknown, at): Slot => ({
      name: `${name}[${String(at)}]`,
      value,
      put: (other) => put((arg as unknown[]).with(at, other)),
    }));
    return [whole, ...items];
  });
}

/** One defect; there is always one to be had where there is an argument. */
export function defectOf(random: Random, args: readonly unknown[]): Defect {
  const slots = slotsOf(args);
  if (slots.length === 0) return { what: 'one argument too many', args: [throwing()] };
  const slot = random.pick(slots);
  const { value } = slot;
  if (value instanceof AbortSignal && random.chance(0.5)) {
    const aborted = random.chance(0.5);
    const signal = aborted ? AbortSignal.abort() : { aborted: false };
    return {
      what: `${slot.name}: ${aborted ? 'aborted' : 'no AbortSignal'}`,
      args: slot.put(signal),
    };
  }
  if (isArray(value) && random.chance(0.6)) {
    const [what, make] = random.pick(Object.entries(ofArrays));
    return { what: `${slot.name}: ${what}`, args: slot.put(make(value)) };
  }
  const [what, make] = random.pick(Object.entries(anything));
  return { what: `${slot.name}: ${what}`, args: slot.put(make()) };
}
