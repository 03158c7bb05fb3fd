import { Builder, type ConvOptions, type Extent, type Tensor } from './builder.js';
import { standardImage, type Family } from './types.js';

const three = { kernel: 3, pad: 1 } as const;
const halving = { kernel: 3, stride: 2 } as const;

/** Convolution with bias, then normalisation; both numbered, since the original names neither. */
class Layers extends Builder {
  convNorm(input: Tensor, filters: number, options: Omit<ConvOptions, 'filters'> = {}): Tensor {
    return this.batchNorm(this.conv(input, { ...options, filters }));
  }
}

interface Step {
  readonly filters: number;
  readonly kernel: Extent;
  readonly pad: Extent;
}

export const inceptionResnetV2: Family = {
  name: 'inception-resnet-v2',
  description: 'Inception with residual connections, version 2',
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape, numClasses }) {
    const layers = new Layers({ bias: true });
    let body = stem(layers, layers.input(imageShape));
    for (let count = 0; count < 10; count += 1) body = residual35(layers, body);
    body = firstReduction(layers, body);
    // The original has 129, though 128 was meant. Its row of seven adds two rows and removes two columns, which the
    // column of seven reverses.
    const steps17: readonly Step[] = [
      { filters: 129, kernel: 1, pad: 0 },
      { filters: 160, kernel: [1, 7], pad: [1, 2] },
      { filters: 192, kernel: [7, 1], pad: [2, 1] },
    ];
    for (let count = 0; count < 20; count += 1) body = residual(layers, body, 192, steps17);
    body = secondReduction(layers, body);
    const steps8: readonly Step[] = [
      { filters: 192, kernel: 1, pad: 0 },
      { filters: 224, kernel: [1, 3], pad: [0, 1] },
      { filters: 256, kernel: [3, 1], pad: [1, 0] },
    ];
    for (let count = 0; count < 10; count += 1) body = residual(layers, body, 192, steps8);
    body = layers.convNorm(body, 1536);
    layers.fullyConnected(layers.globalPool(body), numClasses);
    return layers.parameters;
  },
};

function stem(layers: Layers, image: Tensor): Tensor {
  let body = layers.convNorm(image, 32, halving);
  body = layers.convNorm(body, 32, { kernel: 3 });
  body = layers.convNorm(body, 64, three);
  body = layers.pool(body, 3, 2);
  body = layers.convNorm(body, 80);
  body = layers.convNorm(body, 192, { kernel: 3 });
  body = layers.pool(body, 3, 2);
  const a = layers.convNorm(body, 96);
  const b = layers.convNorm(layers.convNorm(body, 48), 64, { kernel: 5, pad: 2 });
  const c = layers.convNorm(layers.convNorm(layers.convNorm(body, 64), 96, three), 96, three);
  const d = layers.convNorm(body, 64);
  return layers.concat(a, b, c, d);
}

function residual35(layers: Layers, input: Tensor): Tensor {
  const a = layers.convNorm(input, 32);
  const b = layers.convNorm(layers.convNorm(input, 32), 32, three);
  const c = layers.convNorm(layers.convNorm(layers.convNorm(input, 32), 48, three), 64, three);
  return layers.convNorm(layers.concat(a, b, c), input.channels);
}

/** A 1x1 beside a chain, concatenated and projected to the trunk's width. */
function residual(layers: Layers, input: Tensor, one: number, steps: readonly Step[]): Tensor {
  const a = layers.convNorm(input, one);
  let b = input;
  for (const { filters, ...shape } of steps) b = layers.convNorm(b, filters, shape);
  return layers.convNorm(layers.concat(a, b), input.channels);
}

function firstReduction(layers: Layers, input: Tensor): Tensor {
  const a = layers.convNorm(input, 384, halving);
  const b0 = layers.convNorm(layers.convNorm(input, 256), 256, three);
  const b = layers.convNorm(b0, 384, halving);
  return layers.concat(a, b, layers.pool(input, 3, 2));
}

function secondReduction(layers: Layers, input: Tensor): Tensor {
  const a = layers.convNorm(layers.convNorm(input, 256), 384, halving);
  const b = layers.convNorm(layers.convNorm(input, 256), 288, halving);
  const c0 = layers.convNorm(layers.convNorm(input, 256), 288, three);
  const c = layers.convNorm(c0, 320, halving);
  return layers.concat(a, b, c, layers.pool(input, 3, 2));
}
