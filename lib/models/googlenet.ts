import { Builder, type Tensor } from './builder.js';
import { standardImage, type Family } from './types.js';

// Filters of each block: 1x1; 3x3 reduction, 3x3; 5x5 reduction, 5x5; projection after pooling.
type Block = readonly [number, number, number, number, number, number];

const stages: readonly (readonly (readonly [name: string, block: Block])[])[] = [
  [
    ['in3a', [64, 96, 128, 16, 32, 32]],
    ['in3b', [128, 128, 192, 32, 96, 64]],
  ],
  [
    ['in4a', [192, 96, 208, 16, 48, 64]],
    ['in4b', [160, 112, 224, 24, 64, 64]],
    ['in4c', [128, 128, 256, 24, 64, 64]],
    ['in4d', [112, 144, 288, 32, 64, 64]],
    ['in4e', [256, 160, 320, 32, 128, 128]],
  ],
  [
    ['in5a', [256, 160, 320, 32, 128, 128]],
    ['in5b', [384, 192, 384, 48, 128, 128]],
  ],
];

export const googlenet: Family = {
  name: 'googlenet',
  description: 'GoogLeNet (Inception version 1)',
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape, numClasses }) {
    const builder = new Builder({ bias: true });
    const input = builder.input(imageShape);
    let body = builder.conv(input, {
      name: 'conv_conv1',
      filters: 64,
      kernel: 7,
      stride: 2,
      pad: 3,
    });
    body = builder.pool(body, 3, 2);
    body = builder.conv(body, { name: 'conv_conv2', filters: 64 });
    body = builder.conv(body, { name: 'conv_conv3', filters: 192, kernel: 3, pad: 1 });
    for (const blocks of stages) {
      body = builder.pool(body, 3, 2);
      for (const [name, filters] of blocks) body = block(builder, body, name, filters);
    }
    builder.fullyConnected(builder.globalPool(body), numClasses);
    return builder.parameters;
  },
};

function block(
  builder: Builder,
  input: Tensor,
  name: string,
  [one, reduce3, three, reduce5, five, projection]: Block,
): Tensor {
  const a = builder.conv(input, { name: `conv_${name}_1x1`, filters: one });
  const b0 = builder.conv(input, { name: `conv_${name}_3x3_reduce`, filters: reduce3 });
  const b = builder.conv(b0, { name: `conv_${name}_3x3`, filters: three, kernel: 3, pad: 1 });
  const c0 = builder.conv(input, { name: `conv_${name}_5x5_reduce`, filters: reduce5 });
  const c = builder.conv(c0, { name: `conv_${name}_5x5`, filters: five, kernel: 5, pad: 2 });
  const d = builder.conv(input, { name: `conv_${name}_proj`, filters: projection });
  return builder.concat(a, b, c, d);
}
