// Random numbers from a seed, equal on every machine.

/** A 32-bit mix of two numbers: adjacent seeds give unrelated results. */
export function mix(seed: number, index: number): number {
  let h = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Uniform 32-bit numbers: a Weyl sequence, mixed. */
export function generator(seed: number): () => number {
  let index = 0;
  return () => mix(seed, index++);
}

/** Nearly normal numbers with mean 0 and variance 1: sums of 12 uniform ones. */
export function normals(count: number, seed: number): Float32Array {
  const next = generator(seed);
  return Float32Array.from({ length: count }, () => {
    let sum = -6;
    for (let i = 0; i < 12; ++i) sum += next() / 2 ** 32;
    return sum;
  });
}

/** A random permutation of 0 to count - 1. */
export function permutation(count: number, seed: number): Uint32Array {
  const next = generator(seed);
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; --last) {
    const other = next() % (last + 1);
    const moved = order[last]!;
    order[last] = order[other]!;
    order[other] = moved;
  }
  return order;
}
