import { Builder } from './builder.js';
import { standardImage, type Family } from './types.js';

/** Chains of convolutions and fully connected layers, without branches. */

const alexnet: Family = {
  name: 'alexnet',
  description: 'AlexNet on one device',
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape, numClasses }) {
    const builder = new Builder({ bias: true });
    let body = builder.conv(builder.input(imageShape), { filters: 96, kernel: 11, stride: 4 });
    body = builder.pool(body, 3, 2);
    body = builder.conv(body, { filters: 256, kernel: 5, pad: 2 });
    body = builder.pool(body, 3, 2);
    for (const filters of [384, 384, 256]) {
      body = builder.conv(body, { filters, kernel: 3, pad: 1 });
    }
    body = builder.pool(body, 3, 2);
    for (const units of [4096, 4096, numClasses]) body = builder.fullyConnected(body, units);
    return builder.parameters;
  },
};

const vggRepeats = new Map<number, readonly number[]>([
  [11, [1, 1, 2, 2, 2]],
  [13, [2, 2, 2, 2, 2]],
  [16, [2, 2, 3, 3, 3]],
  [19, [2, 2, 4, 4, 4]],
]);
const vggWidths = [64, 128, 256, 512, 512];

const vgg: Family = {
  name: 'vgg',
  description: 'VGG without normalisation',
  numLayers: [...vggRepeats.keys()],
  multipliers: [],
  imageShape: standardImage,
  acceptsDepth: ({ numLayers }) => vggRepeats.has(numLayers),
  describeDepths: () => [...vggRepeats.keys()].join(', '),
  build({ numLayers, imageShape, numClasses }) {
    const builder = new Builder({ bias: true });
    let body = builder.input(imageShape);
    for (const [group, repeats] of (vggRepeats.get(numLayers) ?? []).entries()) {
      for (let index = 1; index <= repeats; index += 1) {
        const name = `conv${group + 1}_${index}`;
        body = builder.conv(body, { name, filters: vggWidths[group] ?? 0, kernel: 3, pad: 1 });
      }
      body = builder.pool(body, 2, 2);
    }
    for (const [index, units] of [4096, 4096, numClasses].entries()) {
      body = builder.fullyConnected(body, units, `fc${index + 6}`);
    }
    return builder.parameters;
  },
};

const lenet: Family = {
  name: 'lenet',
  description: 'LeNet with two convolutions',
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape, numClasses }) {
    const builder = new Builder({ bias: true });
    let body = builder.conv(builder.input(imageShape), { filters: 20, kernel: 5 });
    body = builder.pool(body, 2, 2);
    body = builder.conv(body, { filters: 50, kernel: 5 });
    body = builder.pool(body, 2, 2);
    for (const units of [500, numClasses]) body = builder.fullyConnected(body, units);
    return builder.parameters;
  },
};

const mlp: Family = {
  name: 'mlp',
  description: 'Multilayer perceptron on the flattened image',
  numLayers: [],
  multipliers: [],
  imageShape: standardImage,
  build({ imageShape, numClasses }) {
    const builder = new Builder({ bias: true });
    let body = builder.input(imageShape);
    for (const [index, units] of [128, 64, numClasses].entries()) {
      body = builder.fullyConnected(body, units, `fc${index + 1}`);
    }
    return builder.parameters;
  },
};

export const plainNetworks: readonly Family[] = [alexnet, vgg, lenet, mlp];
