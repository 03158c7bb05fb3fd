// Every export of every entry, called with what it cannot take. Nothing is listed by hand but instances of classes and
// what must not be called, so that a new function is tried by itself.

/** An object whose methods are called; made anew for each probe, as a probe may close or change it. */
export interface Instance {
  readonly object: object;
  readonly close?: () => unknown;
}

export type Maker = () => Promise<Instance>;

/** What is given for every argument. */
export const wrongs: readonly (readonly [string, readonly unknown[]])[] = [
  ['no argument', []],
  ...(
    [
      ['undefined', undefined],
      ['null', null],
      ['a number', 7.5],
      ['a string', 'x'],
      ['{}', {}],
      ['[]', []],
    ] as const
  ).map(([name, value]) => [name, [value, value, value, value]] as const),
];

type Callable = (...args: unknown[]) => unknown;
type Constructor = new (...args: unknown[]) => object;

export const isClass = (value: unknown): value is Constructor =>
  typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));

/** Names of what a class itself can be asked for. */
export function staticsOf(of: Constructor): string[] {
  return Object.getOwnPropertyNames(of).filter(
    (name) => typeof Object.getOwnPropertyDescriptor(of, name)?.value === 'function',
  );
}

/** Names of the methods of a class and of those it extends. */
export function methodsOf(of: Constructor): string[] {
  const names = new Set<string>();
  for (
    let prototype = of.prototype as object | null;
    prototype !== null && prototype !== Object.prototype && prototype !== Error.prototype;
    prototype = Object.getPrototypeOf(prototype) as object | null
  ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (name !== 'constructor' && typeof value === 'function') names.add(name);
    }
  }
  return [...names];
}

/** What a call gives is looked at as far as it goes: a promise to its end, a generator to its first value. */
export async function settled(call: () => unknown): Promise<unknown> {
  const result = await call();
  if (typeof result === 'object' && result !== null && Symbol.iterator in result) {
    const generator = result as { next?: () => unknown };
    if (typeof generator.next === 'function') generator.next();
  }
  return result;
}

/** Why what was thrown is not as docs/errors.md says; undefined where it is. */
export function untyped(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return `no Error: ${String(thrown)}`;
  const { code } = thrown as { code?: unknown };
  if (typeof code === 'string' && code.startsWith('ERR_')) return undefined;
  return `${thrown.name} without a code (${String(code)}): ${thrown.message}`;
}

export const callOf = (object: object, name: string): Callable => {
  const method = (object as Record<string, unknown>)[name] as Callable;
  return (...args) => Reflect.apply(method, object, args);
};
