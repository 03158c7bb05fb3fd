// Data that a network needs thousands of samples to learn: patterns of ten classes under noise, in the shape of images.
import { syntheticImages } from 'gradlink/tfjs';

export const classes = 10;
/** Noisy samples of a class whose mean is its pattern. */
const averaged = 64;

/**
 * A training set and samples that are not trained on.
 *
 * @param shape height, width, channels
 * @param signal how strong a pattern is beside the noise: single pixels tell nothing where it is far below 1, and even the
 *   best guess is not always right
 * @param smooth how often patterns become the means of 3 by 3 pixels, so that convolutions have something to see
 */
export function learnable({ shape, signal, smooth = 0, seed = 7, samples = 50_000, held = 1000 }) {
  const elements = shape.reduce((product, length) => product * length, 1);
  const [made, noise] = [
    syntheticImages('x', shape, { seed }),
    syntheticImages('x', shape, { seed, classes: 2 ** 16, samples: samples + held }),
  ];
  const patterns = Array.from({ length: classes }, (_, label) =>
    smoothed(meanOf(made, label, elements), shape, smooth),
  );
  const read = (index, into) => {
    noise.read(index, into);
    const label = index % classes;
    const own = patterns[label];
    for (let i = 0; i < elements; ++i) into[i] = into[i] * Math.SQRT1_2 + signal * own[i];
    return label;
  };
  return {
    train: { ...made, samples, read },
    held: { ...made, samples: held, read: (index, into) => read(samples + index, into) },
    patterns,
  };
}

function meanOf(made, label, elements) {
  const sum = new Float32Array(elements);
  const one = new Float32Array(elements);
  for (let i = 0; i < averaged; ++i) {
    made.read(label + classes * i, one);
    for (let j = 0; j < elements; ++j) sum[j] += one[j] / averaged;
  }
  return sum;
}

/** As strong as before: what neighbours take from one another is given back. */
function smoothed(pattern, [height, width, channels], times) {
  if (times === 0) return pattern;
  let from = pattern;
  for (let time = 0; time < times; ++time) {
    const at = (y, x, channel) =>
      from[(((y + height) % height) * width + ((x + width) % width)) * channels + channel];
    from = from.map((_, index) => {
      const channel = index % channels;
      const x = Math.floor(index / channels) % width;
      const y = Math.floor(index / channels / width);
      let sum = 0;
      for (const dy of [-1, 0, 1]) for (const dx of [-1, 0, 1]) sum += at(y + dy, x + dx, channel);
      return sum / 9;
    });
  }
  const strength = Math.sqrt(from.reduce((sum, value) => sum + value * value, 0) / from.length);
  return from.map((value) => value / strength);
}

/** The share of samples that is guessed by who knows the patterns: more than any network can learn. */
export function knownShare({ held, patterns }) {
  const one = new Float32Array(patterns[0].length);
  let right = 0;
  for (let index = 0; index < held.samples; ++index) {
    const label = held.read(index, one);
    const scores = patterns.map((own) =>
      own.reduce((sum, value, i) => sum + value * (one[i] - value / 2), 0),
    );
    if (scores.indexOf(Math.max(...scores)) === label) ++right;
  }
  return right / held.samples;
}
