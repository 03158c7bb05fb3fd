// The declared native surface and the addon's exports are the same.
import { readdirSync, readFileSync } from 'node:fs';

import ts from 'typescript';
import { describe, expect, it } from 'vitest';

import { native, nativePath } from '../../lib/native/load.js';
import { nativeCalls, nativeCollectives } from '../../lib/collectives.js';

const folder = new URL('../../lib/native/', import.meta.url);
/** Every interface that lib/native declares, by its name. */
const interfaces = new Map(
  readdirSync(folder)
    .map((file) => readFileSync(new URL(file, folder), 'utf8'))
    .flatMap((text) => ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest).statements)
    .filter((one) => ts.isInterfaceDeclaration(one))
    .map((one) => [one.name.text, one]),
);

/** Its members and those of what it extends, but for plain values, which are those of each object. */
function declaredIn(name: string): ts.TypeElement[] {
  const one = interfaces.get(name)!;
  const parents = (one.heritageClauses ?? []).flatMap(({ types }) => types);
  return [
    ...one.members.filter(({ name: own }) => own !== undefined),
    ...parents.flatMap(({ expression }) => declaredIn((expression as ts.Identifier).text)),
  ];
}
const nameOf = ({ name }: ts.TypeElement): string => (name as ts.Identifier).text;
const kindOf = (one: ts.TypeElement) =>
  ts.isMethodSignature(one) ? ('method' as const) : ('property' as const);
const declared = (name: string) =>
  Object.fromEntries(declaredIn(name).map((one) => [nameOf(one), kindOf(one)]));

/** Values of each buffer: test/gpu/buffers.test.ts looks at one. */
const ofBuffers = [
  'device',
  'dtype',
  'length',
  'buffer',
  'byteOffset',
  'byteLength',
  'registration',
];

/** What a class gives its instances. */
function membersOf(owner: object): Record<string, 'property' | 'method'> {
  const all = Object.entries(Object.getOwnPropertyDescriptors(owner));
  return Object.fromEntries(
    all
      .filter(([name]) => name !== 'constructor')
      .map(([name, { value }]) => [name, typeof value === 'function' ? 'method' : 'property']),
  );
}

describe('the native surface', () => {
  it('is exported and declared alike', () => {
    const found = Object.entries(native()).map(([name, value]) => [
      name,
      /^[A-Z]/.test(name) || typeof value !== 'function' ? 'property' : 'method',
    ]);
    expect(found.length).toBeGreaterThan(40);
    expect(Object.fromEntries(found)).toEqual(declared('NativeAddon'));
  });

  const { NativeCommunicator, NativeDeviceBuffer, NativeKVStore, NativeOptimizer, NativeServer } =
    native();
  it.each(
    Object.entries({
      NativeCommunicator,
      NativeDeviceBuffer,
      NativeKVStore,
      NativeOptimizer,
      NativeServer,
    }),
  )('of %s has the declared members', (name, { prototype }) => {
    const members = Object.entries(declared(name));
    const own = members.filter(
      ([one]) => name !== 'NativeDeviceBuffer' || !ofBuffers.includes(one),
    );
    expect(own.length).toBeGreaterThan(5);
    expect(membersOf(prototype)).toEqual(Object.fromEntries(own));
  });

  it.each(Object.entries({ NativeCommunicator, NativeDeviceBuffer, NativeKVStore }))(
    'of %s has the declared static members',
    (name, of) => {
      const builtIn = ['length', 'name', 'arguments', 'caller', 'prototype'];
      const found = Object.getOwnPropertyNames(of).filter((one) => !builtIn.includes(one));
      const statics = Object.keys(declared(`${name}Class`)).filter((one) => one !== 'prototype');
      expect(found.sort()).toEqual(statics.sort());
    },
  );

  it('has the declared collectives, in the declared order', () => {
    const { calls } = native();
    expect(calls.slice(0, nativeCollectives.length)).toEqual(nativeCollectives);
    expect(calls.map(({ name }) => name)).toEqual(nativeCalls);
  });

  it('comes from a file that can be told', () => {
    expect(nativePath()).toMatch(/\.node$/);
  });
});

// Past lib/, as a slip in it would reach the addon: an error, not a crash.
describe('native checks', () => {
  const { NativeCommunicator } = native();
  const one = NativeCommunicator.local(2);
  const data = [new Float32Array(4), new Float32Array(4)];
  const float32 = 8 << 8;
  const loose = one as unknown as Record<string, (...args: unknown[]) => unknown>;

  it.each<[string, unknown[], RegExp]>([
    ['an unknown operation', [nativeCalls.length, data, data, 4, 0, -1], /known operation/],
    ['an unknown dtype', [13 << 8, data, data, 4, 0, -1], /known operation/],
    ['an array that is too short', [float32, data, data, 5, 0, -1], /5 elements.*data.* 4$/],
    ['an out that is too short', [3 | float32, data, data, 4, 0, -1], /8 elements.*out.* 4$/],
    ['a count that no memory holds', [float32, data, data, 2 ** 60, 0, -1], /for count/],
    ['a negative count', [float32, data, data, -1, 0, -1], /for count/],
    ['a root that is none', [2 | float32, data, data, 4, 2, -1], /0 to 1 .*root/],
    ['a list too short', [float32, [data[0]], data, 4, 0, -1], /2 held ranks.*data.* 1$/],
    ['no list', [float32, data[0], data, 4, 0, -1], /array for data/],
    ['another element type', [float32, data, [new Int32Array(4), data[1]], 4, 0, -1], /for out/],
    ['nothing at all', [], /got undefined/],
  ])('refuse %s', (_, args, message) => {
    expect(() => loose['runSync']?.(...args)).toThrow(message);
    expect(() => loose['run']?.(...args, 0)).toThrow(message);
  });

  it.each(['pairGossip', 'sendReceive'] as const)('refuse an empty list of %s', (kind) => {
    const call = nativeCalls.indexOf(kind) | float32;
    const refused = expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }) as Error;
    expect(() => one.runSync(call, [], [], 0, 0, -1, [])).toThrow(refused);
    expect(() => one.run(call, [], [], 0, 0, -1, 0, [])).toThrow(refused);
  });

  it('refuse another object as communicator', () => {
    expect(() => loose['runSync']?.call({}, float32, data, data, 4, 0, -1)).toThrow();
    const impostor = Object.create(NativeCommunicator.prototype) as typeof one;
    expect(() => native().timeCollective(impostor, {} as never)).toThrow();
  });

  it('refuse calls after close', async () => {
    const closed = NativeCommunicator.local(1);
    const barrier = nativeCollectives.findIndex(({ name }) => name === 'barrier');
    await closed.close();
    await closed.close();
    expect(() => closed.runSync(barrier, null, null, 0, 0, -1)).toThrow(/closed/);
    expect(() => closed.run(barrier, null, null, 0, 0, -1, 0)).toThrow(/closed/);
  });
});
