import { Builder, type ConvOptions, type Tensor } from './builder.js';
import { standardImage, type Family } from './types.js';

/** Networks of depthwise and pointwise convolutions, with a width multiplier. */

type NamedConv = ConvOptions & { readonly name: string };

const mobilenet: Family = {
  name: 'mobilenet',
  description: 'MobileNet version 1',
  numLayers: [],
  multipliers: [0.25, 0.5, 0.75, 1],
  imageShape: standardImage,
  build({ imageShape, numClasses, multiplier }) {
    const builder = new Builder({ bias: false });
    const convNorm = (input: Tensor, { name, ...options }: NamedConv): Tensor =>
      builder.batchNorm(
        builder.conv(input, { ...options, name: `${name}_conv2d` }),
        `${name}_batchnorm`,
      );
    const base = Math.trunc(32 * multiplier);
    // Output width of each pair in units of base, and the stride of its depthwise half.
    const pairs: readonly (readonly [width: number, stride: number])[] = [
      [2, 1],
      [4, 2],
      [4, 1],
      [8, 2],
      [8, 1],
      [16, 2],
      ...Array.from({ length: 5 }, () => [16, 1] as const),
      [32, 2],
      [32, 1],
    ];
    let body = convNorm(builder.input(imageShape), {
      name: 'conv_1',
      filters: base,
      kernel: 3,
      stride: 2,
      pad: 1,
    });
    for (const [index, [width, stride]] of pairs.entries()) {
      const name = `conv_${index + 2}`;
      const depth = body.channels;
      const depthwise = { filters: depth, groups: depth, kernel: 3, stride, pad: 1 };
      body = convNorm(body, { ...depthwise, name: `${name}_dw` });
      body = convNorm(body, { name, filters: base * width });
    }
    // The window is 7x7 for any image, as in the original, which ignores the resolution.
    builder.fullyConnected(builder.pool(body, 7), numClasses, 'fc');
    return builder.parameters;
  },
};

const mobilenetV2: Family = {
  name: 'mobilenetv2',
  description: 'MobileNet version 2 (inverted residuals)',
  numLayers: [],
  multipliers: [0.25, 0.5, 0.75, 1, 1.4],
  imageShape: standardImage,
  build({ imageShape, numClasses, multiplier }) {
    const builder = new Builder({ bias: false });
    const convNorm = (input: Tensor, { name, ...options }: NamedConv): Tensor =>
      builder.batchNorm(
        builder.conv(input, { ...options, name: `${name}-conv2d` }),
        `${name}-batchnorm`,
      );
    const scaled = (filters: number): number => Math.round(filters * multiplier);
    // Expansion, output channels, units, stride of the first unit.
    const sequences: readonly (readonly [number, number, number, number])[] = [
      [1, 16, 1, 1],
      [6, 24, 2, 2],
      [6, 32, 3, 2],
      [6, 64, 4, 2],
      [6, 96, 3, 1],
      [6, 160, 3, 2],
      [6, 320, 1, 1],
    ];
    let body = convNorm(builder.input(imageShape), {
      name: 'first-3x3-conv',
      filters: scaled(32),
      kernel: 3,
      stride: 2,
      pad: 1,
    });
    for (const [sequence, [expansion, filters, units, firstStride]] of sequences.entries()) {
      for (let unit = 0; unit < units; unit += 1) {
        const name = `seq-${sequence}-block${unit}`;
        const stride = unit === 0 ? firstStride : 1;
        const expanded = body.channels * expansion;
        // An expansion by one is a convolution too.
        body = convNorm(body, { name: `${name}-exp`, filters: expanded });
        const depthwise = { filters: expanded, groups: expanded, kernel: 3, stride, pad: 1 };
        body = convNorm(body, { ...depthwise, name: `${name}-depthwise` });
        body = convNorm(body, { name: `${name}-linear`, filters: scaled(filters) });
      }
    }
    // Narrow variants keep the full head.
    const head = multiplier > 1 ? Math.trunc(1280 * multiplier) : 1280;
    body = convNorm(body, { name: 'last-1x1-conv', filters: head });
    builder.fullyConnected(builder.globalPool(body), numClasses, 'fc');
    return builder.parameters;
  },
};

export const mobileNetworks: readonly Family[] = [mobilenet, mobilenetV2];
