import { Builder, type ConvOptions, type Tensor } from './builder.js';
import type { Family } from './types.js';

/** Convolution `NAME_conv2d` without bias, then normalisation `NAME_batchnorm`: versions 3 and 4. */
export class InceptionLayers extends Builder {
  convNorm(input: Tensor, name: string, options: Omit<ConvOptions, 'name'>): Tensor {
    const conv = this.conv(input, { ...options, name: `${name}_conv2d` });
    return this.batchNorm(conv, `${name}_batchnorm`);
  }
}

export const inceptionImage = [3, 299, 299] as const;

const three = { kernel: 3, pad: 1 } as const;
const halving = { kernel: 3, stride: 2 } as const;
const row7 = { kernel: [1, 7], pad: [0, 3] } as const;
const column7 = { kernel: [7, 1], pad: [3, 0] } as const;
const row3 = { kernel: [1, 3], pad: [0, 1] } as const;
const column3 = { kernel: [3, 1], pad: [1, 0] } as const;

export const inceptionV3: Family = {
  name: 'inception-v3',
  description: 'Inception version 3',
  numLayers: [],
  multipliers: [],
  imageShape: inceptionImage,
  build({ imageShape, numClasses }) {
    const layers = new InceptionLayers({ bias: false });
    let body = stem(layers, layers.input(imageShape));
    for (const [index, projection] of [32, 64, 64].entries()) {
      body = block5x5(layers, body, index === 0 ? 'mixed' : `mixed_${index}`, projection);
    }
    body = firstReduction(layers, body, 'mixed_3');
    for (const [index, middle] of [128, 160, 160, 192].entries()) {
      body = block7x7(layers, body, `mixed_${index + 4}`, middle);
    }
    body = secondReduction(layers, body, 'mixed_8');
    for (const name of ['mixed_9', 'mixed_10']) body = blockSplit3(layers, body, name);
    layers.fullyConnected(layers.pool(body, 8), numClasses, 'fc1');
    return layers.parameters;
  },
};

function stem(layers: InceptionLayers, image: Tensor): Tensor {
  let body = layers.convNorm(image, 'conv', { filters: 32, ...halving });
  body = layers.convNorm(body, 'conv_1', { filters: 32, kernel: 3 });
  body = layers.convNorm(body, 'conv_2', { filters: 64, ...three });
  body = layers.pool(body, 3, 2);
  body = layers.convNorm(body, 'conv_3', { filters: 80 });
  body = layers.convNorm(body, 'conv_4', { filters: 192, kernel: 3 });
  return layers.pool(body, 3, 2);
}

function block5x5(
  layers: InceptionLayers,
  input: Tensor,
  name: string,
  projection: number,
): Tensor {
  const a = layers.convNorm(input, `${name}_conv`, { filters: 64 });
  let b = layers.convNorm(input, `${name}_tower_conv`, { filters: 48 });
  b = layers.convNorm(b, `${name}_tower_conv_1`, { filters: 64, kernel: 5, pad: 2 });
  let c = layers.convNorm(input, `${name}_tower_1_conv`, { filters: 64 });
  c = layers.convNorm(c, `${name}_tower_1_conv_1`, { filters: 96, ...three });
  c = layers.convNorm(c, `${name}_tower_1_conv_2`, { filters: 96, ...three });
  const d = layers.convNorm(input, `${name}_tower_2_conv`, { filters: projection });
  return layers.concat(a, b, c, d);
}

function firstReduction(layers: InceptionLayers, input: Tensor, name: string): Tensor {
  const a = layers.convNorm(input, `${name}_conv`, { filters: 384, ...halving });
  let b = layers.convNorm(input, `${name}_tower_conv`, { filters: 64 });
  b = layers.convNorm(b, `${name}_tower_conv_1`, { filters: 96, ...three });
  b = layers.convNorm(b, `${name}_tower_conv_2`, { filters: 96, ...halving });
  return layers.concat(a, b, layers.pool(input, 3, 2));
}

function block7x7(layers: InceptionLayers, input: Tensor, name: string, middle: number): Tensor {
  const a = layers.convNorm(input, `${name}_conv`, { filters: 192 });
  let b = layers.convNorm(input, `${name}_tower_conv`, { filters: middle });
  b = layers.convNorm(b, `${name}_tower_conv_1`, { filters: middle, ...row7 });
  b = layers.convNorm(b, `${name}_tower_conv_2`, { filters: 192, ...column7 });
  let c = layers.convNorm(input, `${name}_tower_1_conv`, { filters: middle });
  c = layers.convNorm(c, `${name}_tower_1_conv_1`, { filters: middle, ...column7 });
  c = layers.convNorm(c, `${name}_tower_1_conv_2`, { filters: middle, ...row7 });
  c = layers.convNorm(c, `${name}_tower_1_conv_3`, { filters: middle, ...column7 });
  c = layers.convNorm(c, `${name}_tower_1_conv_4`, { filters: 192, ...row7 });
  const d = layers.convNorm(input, `${name}_tower_2_conv`, { filters: 192 });
  return layers.concat(a, b, c, d);
}

function secondReduction(layers: InceptionLayers, input: Tensor, name: string): Tensor {
  let a = layers.convNorm(input, `${name}_tower_conv`, { filters: 192 });
  a = layers.convNorm(a, `${name}_tower_conv_1`, { filters: 320, ...halving });
  let b = layers.convNorm(input, `${name}_tower_1_conv`, { filters: 192 });
  b = layers.convNorm(b, `${name}_tower_1_conv_1`, { filters: 192, ...row7 });
  b = layers.convNorm(b, `${name}_tower_1_conv_2`, { filters: 192, ...column7 });
  b = layers.convNorm(b, `${name}_tower_1_conv_3`, { filters: 192, ...halving });
  return layers.concat(a, b, layers.pool(input, 3, 2));
}

/** Both towers end in a parallel row and column. */
function blockSplit3(layers: InceptionLayers, input: Tensor, name: string): Tensor {
  const a = layers.convNorm(input, `${name}_conv`, { filters: 320 });
  const b = layers.convNorm(input, `${name}_tower_conv`, { filters: 384 });
  const b1 = layers.convNorm(b, `${name}_tower_mixed_conv`, { filters: 384, ...row3 });
  const b2 = layers.convNorm(b, `${name}_tower_mixed_conv_1`, { filters: 384, ...column3 });
  let c = layers.convNorm(input, `${name}_tower_1_conv`, { filters: 448 });
  c = layers.convNorm(c, `${name}_tower_1_conv_1`, { filters: 384, ...three });
  const c1 = layers.convNorm(c, `${name}_tower_1_mixed_conv`, { filters: 384, ...row3 });
  const c2 = layers.convNorm(c, `${name}_tower_1_mixed_conv_1`, { filters: 384, ...column3 });
  const d = layers.convNorm(input, `${name}_tower_2_conv`, { filters: 192 });
  return layers.concat(a, b1, b2, c1, c2, d);
}
