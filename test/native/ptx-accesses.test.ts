// How wide the kernels of the package touch memory, read from the PTX that it carries. A GPU needs accesses of 128 bits for
// its full bandwidth, and nvcc takes vectors apart without a word. Needs no CUDA.
import { describe, expect, test } from 'vitest';

import { ptx } from '../support/ptx.js';

interface Access {
  readonly store: boolean;
  readonly global: boolean;
  readonly bits: number;
}

/** Every load and store of a kernel's text but those of its parameters. */
function accessesOf(body: string): Access[] {
  return [...body.matchAll(/^\s*(?:@!?%p\d+ )?(ld|st)((?:\.\w+)+)\s/gm)].flatMap(
    ([, kind = '', modifiers = '']) => {
      const words = modifiers.split('.');
      if (words.includes('param')) return [];
      const many = Number(words.find((word) => /^v[248]$/.test(word))?.slice(1) ?? 1);
      const bits = many * Number(/\d+$/.exec(modifiers)?.[0]);
      return [{ store: kind === 'st', global: words.includes('global'), bits }];
    },
  );
}

const kernels = new Map(
  Object.values(ptx).flatMap((text) =>
    [...text.matchAll(/^\.visible \.entry gradlink(\w+)\([^]*?^\}/gm)].map(
      ([body, name = '']) => [name, accessesOf(body)] as const,
    ),
  ),
);

/** How many loads and stores of 128 bits a kernel has. */
type Wide = readonly [loads: number, stores: number];

const of = (types: readonly string[], name: string, wide: Wide) =>
  types.map((type): [string, Wide] => [`${name}${type}`, wide]);
const full = ['Float32', 'Float64'];
const half = ['Float16', 'Bfloat16'];

/** States of each optimizer's formula. */
const states = {
  Sgd: 0,
  SgdMomentum: 1,
  Nesterov: 1,
  Adam: 2,
  Adamw: 2,
  Adagrad: 1,
  Rmsprop: 1,
  RmspropCentered: 3,
  Adadelta: 2,
  Ftrl: 2,
  SignSgd: 0,
  Signum: 1,
  AddScaled: 0,
  Adamax: 2,
  Nadam: 2,
  Ftml: 3,
  Dcasgd: 2,
  Lbsgd: 2,
};

/** Kernels of float32 and both half types, four elements at a time. */
const floats: readonly [string, Wide][] = [
  ['Weighted', [1, 1]],
  // Weight or master, a gradient and the states; master, the weight or a target, and the states.
  ...Object.entries(states).map(([formula, many]): [string, Wide] => [
    formula,
    [2 + many, 2 + many],
  ]),
  // No gradient, and its states were stored by the first half.
  ['LambApply', [3, 2]],
];

const claimed: readonly [string, Wide][] = [
  // Four vectors a thread of the first source and as many of each other one; in a last tile one of each.
  ...of(['Int8', 'Int32', 'Int64', ...full], 'Sum', [11, 6]),
  ...of(half, 'Sum', [10, 5]),
  // Gradient and residual; residual and meanings.
  ['Compress2', [2, 2]],
  ['Compress1', [4, 4]],
  ['Decompress2', [0, 1]],
  ['Decompress1', [0, 2]],
  ['Copy', [5, 5]],
  ...floats,
];

/** Of these nothing is claimed: lanes of 16 elements are 64 bytes side by side, the rest is little or is no copy. */
const unclaimed = ['LarsSquares', 'LambSquares', 'LbsgdSquares', 'FoldLanes', 'ScaleRate'].concat([
  'WeightedFloat64',
  'Pattern',
  'Spin',
  'Chase',
]);

describe('the kernels of the package', () => {
  test('are all in the table, and the table has no other', () => {
    expect([...claimed.map(([name]) => name), ...unclaimed].sort()).toEqual(
      [...kernels.keys()].sort(),
    );
  });

  test.each(claimed)('%s has %j loads and stores of 128 bits', (name, [loads, stores]) => {
    const wide = (kernels.get(name) ?? []).filter(({ bits }) => bits === 128);
    expect(wide.filter(({ store }) => !store)).toHaveLength(loads);
    expect(wide.filter(({ store }) => store)).toHaveLength(stores);
  });

  test.each(floats)('%s stores four halves as 64 bits', (name) => {
    const narrower = (kernels.get(name) ?? []).filter(({ store, bits }) => store && bits === 64);
    expect(narrower).toHaveLength(1);
  });

  test('say that their memory is global: what does not is looked up at every access', () => {
    const generic = [...kernels].filter(([, all]) => all.some(({ global }) => !global));
    // The chase loads through volatile pointers, one after the other.
    expect(generic.map(([name]) => name).filter((name) => name !== 'Chase')).toEqual([]);
  });
});
