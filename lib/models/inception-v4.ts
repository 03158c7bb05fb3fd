import type { Tensor } from './builder.js';
import type { Family } from './types.js';
import { inceptionImage, InceptionLayers } from './inception-v3.js';

// In the original a convolution's shape is part of its name.
const forms = {
  one: { label: '1*1' },
  three: { label: '3*3', kernel: 3, pad: 1 },
  tight: { label: '3*3', kernel: 3 },
  halving: { label: '3*3', kernel: 3, stride: 2 },
  row7: { label: '1*7', kernel: [1, 7], pad: [0, 3] },
  column7: { label: '7*1', kernel: [7, 1], pad: [3, 0] },
  row3: { label: '3*1', kernel: [1, 3], pad: [0, 1] },
  column3: { label: '1*3', kernel: [3, 1], pad: [1, 0] },
} as const;

type Step = readonly [filters: number, form: keyof typeof forms, label?: string];

/** Numbers the convolutions of a block as the original does: `BLOCK_conv1_1*1`, `BLOCK_conv2_3*3`, ... */
class Block {
  readonly #layers: InceptionLayers;
  readonly #name: string;
  #count = 0;

  constructor(layers: InceptionLayers, name: string) {
    this.#layers = layers;
    this.#name = name;
  }

  chain(input: Tensor, ...steps: readonly Step[]): Tensor {
    let body = input;
    for (const [filters, form, label] of steps) {
      this.#count += 1;
      const { label: usual, ...shape } = forms[form];
      const name = `${this.#name}_conv${this.#count}_${label ?? usual}`;
      body = this.#layers.convNorm(body, name, { filters, ...shape });
    }
    return body;
  }
}

export const inceptionV4: Family = {
  name: 'inception-v4',
  description: 'Inception version 4',
  numLayers: [],
  multipliers: [],
  imageShape: inceptionImage,
  build({ imageShape, numClasses }) {
    const layers = new InceptionLayers({ bias: false });
    let body = stem(layers, layers.input(imageShape));
    for (let index = 1; index <= 4; index += 1) body = blockA(layers, body, `in${index}A`);
    body = reductionA(layers, body);
    for (let index = 1; index <= 7; index += 1) body = blockB(layers, body, `in${index}B`);
    body = reductionB(layers, body);
    for (let index = 1; index <= 3; index += 1) body = blockC(layers, body, `in${index}C`);
    // Padded and with stride 1, so that an image of 299 leaves a 3x3 map instead of one value per channel.
    layers.fullyConnected(layers.pool(body, 8, 1, 1), numClasses, 'fc1');
    return layers.parameters;
  },
};

function stem(layers: InceptionLayers, image: Tensor): Tensor {
  const block = new Block(layers, 'in_stem');
  let body = block.chain(image, [32, 'halving'], [32, 'tight'], [64, 'three']);
  body = layers.concat(block.chain(body, [96, 'halving']), layers.pool(body, 3, 2));
  const left = block.chain(body, [64, 'one'], [96, 'tight']);
  const right = block.chain(body, [64, 'one'], [64, 'column7'], [64, 'row7'], [96, 'tight']);
  body = layers.concat(left, right);
  return layers.concat(block.chain(body, [192, 'halving']), layers.pool(body, 3, 2));
}

function blockA(layers: InceptionLayers, input: Tensor, name: string): Tensor {
  const block = new Block(layers, name);
  return layers.concat(
    block.chain(input, [96, 'one']),
    block.chain(input, [96, 'one']),
    block.chain(input, [64, 'one'], [96, 'three']),
    block.chain(input, [64, 'one'], [96, 'three'], [96, 'three']),
  );
}

function reductionA(layers: InceptionLayers, input: Tensor): Tensor {
  const block = new Block(layers, 're1A');
  return layers.concat(
    block.chain(input, [384, 'halving']),
    block.chain(input, [192, 'one'], [224, 'three'], [256, 'halving']),
    layers.pool(input, 3, 2),
  );
}

function blockB(layers: InceptionLayers, input: Tensor, name: string): Tensor {
  const block = new Block(layers, name);
  return layers.concat(
    block.chain(input, [128, 'one']),
    block.chain(input, [384, 'one']),
    // The original calls its column of seven a row here.
    block.chain(input, [192, 'one'], [224, 'row7'], [256, 'column7', '1*7']),
    block.chain(
      input,
      [192, 'one'],
      [192, 'row7'],
      [224, 'column7'],
      [224, 'row7'],
      [256, 'column7'],
    ),
  );
}

function reductionB(layers: InceptionLayers, input: Tensor): Tensor {
  const block = new Block(layers, 're1B');
  return layers.concat(
    block.chain(input, [192, 'one'], [192, 'halving']),
    block.chain(input, [256, 'one'], [256, 'row7'], [320, 'column7'], [320, 'halving']),
    layers.pool(input, 3, 2),
  );
}

function blockC(layers: InceptionLayers, input: Tensor, name: string): Tensor {
  const block = new Block(layers, name);
  const a = block.chain(input, [256, 'one']);
  const b = block.chain(input, [256, 'one']);
  const c = block.chain(input, [384, 'one']);
  const c1 = block.chain(c, [256, 'row3']);
  const c2 = block.chain(c, [256, 'column3']);
  // Only this tower names its row and column correctly; the two at its end are swapped again.
  const d = block.chain(input, [384, 'one'], [448, 'row3', '1*3'], [512, 'column3', '3*1']);
  const d1 = block.chain(d, [256, 'column3']);
  const d2 = block.chain(d, [256, 'row3']);
  return layers.concat(a, b, c1, c2, d1, d2);
}
