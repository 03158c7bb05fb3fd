import { Builder, type ConvOptions, type Tensor } from './builder.js';
import { standardImage, type Family } from './types.js';

// Filters: 1x1; 3x3 reduction, 3x3; double 3x3 reduction, double 3x3; projection.
type WideBlock = readonly [number, number, number, number, number, number];
// Without 1x1 and projection: halves the map and concatenates its input.
type HalvingBlock = readonly [number, number, number, number];

const blocks: readonly (readonly [name: string, filters: WideBlock | HalvingBlock])[] = [
  ['3a', [64, 64, 64, 64, 96, 32]],
  ['3b', [64, 64, 96, 64, 96, 64]],
  ['3c', [128, 160, 64, 96]],
  ['4a', [224, 64, 96, 96, 128, 128]],
  ['4b', [192, 96, 128, 96, 128, 128]],
  ['4c', [160, 128, 160, 128, 160, 128]],
  ['4d', [96, 128, 192, 160, 192, 128]],
  ['4e', [128, 192, 192, 256]],
  ['5a', [352, 192, 320, 160, 224, 128]],
  ['5b', [352, 192, 320, 192, 224, 128]],
];

// Small images: parallel 1x1 and 3x3, or one number for a halving 3x3.
const smallBlocks: readonly (readonly [name: string, filters: readonly number[]])[] = [
  ['in3a', [32, 32]],
  ['in3b', [32, 48]],
  ['in3c', [80]],
  ['in4a', [112, 48]],
  ['in4b', [96, 64]],
  ['in4c', [80, 80]],
  ['in4d', [48, 96]],
  ['in4e', [96]],
  ['in5a', [176, 160]],
  ['in5b', [176, 160]],
];

/** Convolution `conv_NAME` with bias, then normalisation `bn_NAME`. */
class Layers extends Builder {
  convNorm(input: Tensor, name: string, options: Omit<ConvOptions, 'name'>): Tensor {
    return this.batchNorm(this.conv(input, { ...options, name: `conv_${name}` }), `bn_${name}`);
  }
}

export const inceptionBn: Family = {
  name: 'inception-bn',
  description: 'Inception with batch normalisation',
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape, numClasses }) {
    const layers = new Layers({ bias: true });
    const image = layers.input(imageShape);
    const body = imageShape[1] <= 28 ? smallBody(layers, image) : largeBody(layers, image);
    layers.fullyConnected(layers.pool(body, 7), numClasses);
    return layers.parameters;
  },
};

function largeBody(layers: Layers, image: Tensor): Tensor {
  let body = layers.convNorm(image, '1', { filters: 64, kernel: 7, stride: 2, pad: 3 });
  body = layers.pool(body, 3, 2);
  body = layers.convNorm(body, '2_red', { filters: 64 });
  body = layers.convNorm(body, '2', { filters: 192, kernel: 3, pad: 1 });
  body = layers.pool(body, 3, 2);
  for (const [name, filters] of blocks) {
    body =
      filters.length === 6
        ? wideBlock(layers, body, name, filters)
        : halvingBlock(layers, body, name, filters);
  }
  return body;
}

function wideBlock(layers: Layers, input: Tensor, name: string, filters: WideBlock): Tensor {
  const [one, reduce3, three, reduceDouble, double, projection] = filters;
  const a = layers.convNorm(input, `${name}_1x1`, { filters: one });
  const [b, c] = threes(layers, input, name, [reduce3, three, reduceDouble, double], 1);
  const d = layers.convNorm(input, `${name}_proj`, { filters: projection });
  return layers.concat(a, b, c, d);
}

function halvingBlock(layers: Layers, input: Tensor, name: string, filters: HalvingBlock): Tensor {
  return layers.concat(...threes(layers, input, name, filters, 2), input);
}

function threes(
  layers: Layers,
  input: Tensor,
  name: string,
  [reduce3, three, reduceDouble, double]: HalvingBlock,
  stride: number,
): [Tensor, Tensor] {
  const b0 = layers.convNorm(input, `${name}_3x3_reduce`, { filters: reduce3 });
  const b = layers.convNorm(b0, `${name}_3x3`, { filters: three, kernel: 3, pad: 1, stride });
  const c0 = layers.convNorm(input, `${name}_double_3x3_reduce`, { filters: reduceDouble });
  const c1 = layers.convNorm(c0, `${name}_double_3x3_0`, { filters: double, kernel: 3, pad: 1 });
  const c = layers.convNorm(c1, `${name}_double_3x3_1`, {
    filters: double,
    kernel: 3,
    pad: 1,
    stride,
  });
  return [b, c];
}

function smallBody(layers: Layers, image: Tensor): Tensor {
  let body = layers.convNorm(image, '1', { filters: 96, kernel: 3, pad: 1 });
  for (const [name, [first = 0, second]] of smallBlocks) {
    if (second === undefined) {
      const halving = { filters: first, kernel: 3, stride: 2, pad: 1 };
      body = layers.concat(layers.convNorm(body, `${name}_conv`, halving), body);
    } else {
      const one = layers.convNorm(body, `${name}_1x1`, { filters: first });
      const three = layers.convNorm(body, `${name}_3x3`, { filters: second, kernel: 3, pad: 1 });
      body = layers.concat(one, three);
    }
  }
  return body;
}
