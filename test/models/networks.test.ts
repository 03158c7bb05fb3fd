import { describe, expect, it } from 'vitest';

import { elementsOf, listNetworks, network } from '../../lib/models/index.js';
import type { Network, NetworkName, NetworkOptions } from '../../lib/models/index.js';

function sizes({ parameters }: Network): number[] {
  return parameters.map(({ shape }) => elementsOf(shape));
}

function shapesOf(found: Network): string[] {
  return found.parameters.map(({ name, shape }) => `${name} ${shape.join('x')}`);
}

const at299 = { imageShape: [3, 299, 299] } as const;

// Arrays, elements and MB as the original symbol files give them with MXNet's shape inference; resnet 200 and
// inception-v3 are also printed in the tool's README, resnet 50 follows from published bandwidths.
type Row = readonly [
  name: NetworkName,
  options: NetworkOptions,
  arrays: number,
  elements: number,
  megabytes: string,
  largest: number,
  smallest: number,
  big: number,
  biases: number,
];
const oracle: readonly Row[] = [
  ['resnet', { numLayers: 18 }, 23, 11684008, '46.736032', 2359296, 1000, 4, 1],
  ['resnet', { numLayers: 34 }, 39, 21784744, '87.138976', 2359296, 1000, 6, 1],
  ['resnet', { numLayers: 50 }, 55, 25503912, '102.015648', 2359296, 1000, 10, 1],
  ['resnet', { numLayers: 101 }, 106, 44443816, '177.775264', 2359296, 1000, 10, 1],
  ['resnet', {}, 157, 60041384, '240.165536', 2359296, 1000, 10, 1],
  ['resnet', { numLayers: 200 }, 205, 64497832, '257.991328', 2359296, 1000, 10, 1],
  ['resnext', { numLayers: 50 }, 55, 24960680, '99.842720', 2097152, 1000, 8, 1],
  ['alexnet', {}, 16, 50844008, '203.376032', 26214400, 96, 4, 8],
  ['vgg', { numLayers: 16 }, 32, 138357544, '553.430176', 102760448, 64, 9, 16],
  ['googlenet', {}, 116, 6998552, '27.994208', 1024000, 16, 1, 58],
  ['googlenet', at299, 116, 6998552, '27.994208', 1024000, 16, 1, 58],
  ['inception-v3', at299, 96, 23800136, '95.200544', 2048000, 864, 3, 1],
  ['mobilenet', {}, 29, 4210088, '16.840352', 1048576, 288, 2, 1],
  ['lenet', {}, 8, 70753070, '283.012280', 70225000, 20, 1, 4],
];

describe('sizes of the networks', () => {
  it.each(oracle)('%s %o', (name, options, arrays, elements, megabytes, ...rest) => {
    const found = network(name, options);
    const all = sizes(found);
    const [largest, smallest, big, biases] = rest;
    expect(found.parameters).toHaveLength(arrays);
    expect(found.elements).toBe(elements);
    expect((found.bytes() / 1e6).toFixed(6)).toBe(megabytes);
    expect(Math.max(...all)).toBe(largest);
    expect(Math.min(...all)).toBe(smallest);
    expect(all.filter((size) => size >= 1_000_000)).toHaveLength(big);
    expect(found.parameters.filter(({ name: key }) => key.endsWith('_bias'))).toHaveLength(biases);
  });

  // Counts from the papers' implementations: all of these include gamma and beta where there are any.
  it.each([
    // 157 parameter arrays with BatchNorm, as mxnet's own resnet-50 parameter file has.
    ['resnet', { numLayers: 50, allParams: true }, 157, 25549486],
    // The Keras and torchvision figures of VGG.
    ['vgg', { numLayers: 11 }, 22, 132863336],
    ['vgg', { numLayers: 13 }, 26, 133047848],
    ['vgg', { numLayers: 19 }, 38, 143667240],
    // torchvision: 3,504,872 for version 2. MXNet's has one more convolution (the expansion by one) with its
    // normalisation: 32*32 + 2*32.
    ['mobilenetv2', { allParams: true }, 161, 3504872 + 32 * 32 + 64],
    // Keras: 4,253,864, of which 21,888 moving mean and variance.
    ['mobilenet', { allParams: true }, 83, 4253864 - 21888],
    ['mobilenet', { allParams: true, multiplier: 0.25 }, 83, 475544 - 5472],
    // torchvision: resnet18 11,689,512, resnet50 25,557,032, resnet101 44,549,160, resnet152 60,192,808. Version 1
    // of MXNet projects the shortcut of the first stage too: for 18 layers that is one more 1x1 with its norm.
    ['resnet-v1', { numLayers: 18, allParams: true }, 65, 11689512 + 64 * 64 + 2 * 64],
    ['resnet-v1', { numLayers: 50, allParams: true }, 161, 25557032],
    ['resnet-v1', { numLayers: 101, allParams: true }, 314, 44549160],
    ['resnet-v1', { numLayers: 152, allParams: true }, 467, 60192808],
    // torchvision's inception_v3 without the auxiliary classifier: 23,834,568. Its gamma and beta are ours too.
    ['inception-v3', { ...at299, allParams: true }, 284, 23834568],
    // 110 layers on CIFAR-10: 1.7 million (He et al.). Convolutions: stem, 3 stages of 18 basic units, projections.
    [
      'resnet',
      { numLayers: 110, imageShape: [3, 28, 28], numClasses: 10 },
      1 + 3 * 18 * 2 + 3 + 2,
      27 * 16 + 36 * 2304 + 256 + 4608 + 35 * 9216 + 512 + 18432 + 35 * 36864 + 2048 + 650,
    ],
    // 42,679,816 with one value a channel before the classifier; MXNet's leaves 3x3 of them.
    ['inception-v4', { ...at299, allParams: true }, 449, 42679816 + 8 * 1536 * 1000],
    // The Caffe and PyTorch figure of BN-Inception.
    ['inception-bn', { allParams: true }, 278, 11295240],
    ['torchvision-resnet50', {}, 161, 25557032],
    ['bert-base', {}, 199, 109482240],
  ] as const)('%s %o: %i arrays, %i elements', (name, options, arrays, elements) => {
    const found = network(name, options);
    expect([found.parameters.length, found.elements]).toEqual([arrays, elements]);
  });

  it('counts bytes by element type', () => {
    const lenet = network('lenet');
    expect(lenet.bytes('float16')).toBe(2 * lenet.elements);
    expect(lenet.bytes('bfloat16')).toBe(2 * lenet.elements);
    expect(lenet.bytes('float64')).toBe(8 * lenet.elements);
  });
});

describe('order, names and shapes', () => {
  it('follows a pre-activation unit: normalisation first, projection last', () => {
    const found = shapesOf(network('resnet', { numLayers: 50, allParams: true }));
    expect(found.slice(0, 5)).toEqual([
      'bn_data_gamma 3',
      'bn_data_beta 3',
      'conv0_weight 64x3x7x7',
      'bn0_gamma 64',
      'bn0_beta 64',
    ]);
    expect(found.slice(5, 15)).toEqual([
      'stage1_unit1_bn1_gamma 64',
      'stage1_unit1_bn1_beta 64',
      'stage1_unit1_conv1_weight 64x64x1x1',
      'stage1_unit1_bn2_gamma 64',
      'stage1_unit1_bn2_beta 64',
      'stage1_unit1_conv2_weight 64x64x3x3',
      'stage1_unit1_bn3_gamma 64',
      'stage1_unit1_bn3_beta 64',
      'stage1_unit1_conv3_weight 256x64x1x1',
      'stage1_unit1_sc_weight 256x64x1x1',
    ]);
    expect(found.slice(-4)).toEqual([
      'bn1_gamma 2048',
      'bn1_beta 2048',
      'fc1_weight 1000x2048',
      'fc1_bias 1000',
    ]);
  });

  it('keeps the order when the normalisation is left out', () => {
    const all = network('resnext', { numLayers: 50, allParams: true }).parameters;
    const counted = network('resnext', { numLayers: 50 }).parameters;
    expect(counted).toEqual(all.filter(({ name }) => /weight|bias/.test(name)));
    expect(counted.map(({ name }) => name)).toContain('stage1_unit1_sc_weight');
    expect(all.map(({ name }) => name)).toContain('stage1_unit1_sc_bn_gamma');
  });

  it('splits grouped convolutions', () => {
    expect(shapesOf(network('resnext', { numLayers: 50 }))).toContain(
      'stage1_unit1_conv2_weight 128x4x3x3',
    );
    expect(shapesOf(network('mobilenet'))[1]).toBe('conv_2_dw_conv2d_weight 32x1x3x3');
  });

  it('widens the head of the mobile networks but does not narrow it', () => {
    const last = (multiplier: number): string | undefined =>
      shapesOf(network('mobilenetv2', { multiplier })).at(-3);
    expect(last(1.4)).toBe('last-1x1-conv-conv2d_weight 1792x448x1x1');
    expect(last(0.5)).toBe('last-1x1-conv-conv2d_weight 1280x160x1x1');
  });

  it('numbers layers without a name as MXNet does', () => {
    expect(shapesOf(network('alexnet')).slice(-8, -4)).toEqual([
      'convolution4_weight 256x384x3x3',
      'convolution4_bias 256',
      'fullyconnected0_weight 4096x6400',
      'fullyconnected0_bias 4096',
    ]);
  });

  it('keeps the 129 filters of inception-resnet-v2', () => {
    const found = network('inception-resnet-v2', at299);
    const odd = found.parameters.filter(({ shape }) => shape[0] === 129 && shape.length === 4);
    expect(odd).toHaveLength(20);
  });

  // PyTorch's implementations give 55,843,464 without a bias in front of the normalisation, with 128 filters where
  // this one has 129, and with no normalisation of the 40 convolutions that lead back to the trunk.
  it('has the published size of inception-resnet-v2 but for its known differences', () => {
    const { elements, parameters } = network('inception-resnet-v2', { ...at299, allParams: true });
    let extra = 20 * (1088 + 2 + 160 * 7);
    for (const [index, { name, shape }] of parameters.entries()) {
      if (!/^convolution\d+_bias$/.test(name)) continue;
      const [filters = 0, channels = 0, height = 0] = parameters[index - 1]?.shape ?? [];
      const toTrunk = ['320,128,1', '1088,384,1', '2080,448,1'].includes(
        [filters, channels, height].join(','),
      );
      extra += (toTrunk ? 2 : 1) * (shape[0] ?? 0);
    }
    expect(elements - extra).toBe(55843464);
  });

  it("names torchvision's and BERT's arrays as PyTorch does", () => {
    expect(shapesOf(network('torchvision-resnet50')).slice(0, 6)).toEqual([
      'conv1.weight 64x3x7x7',
      'bn1.weight 64',
      'bn1.bias 64',
      'layer1.0.conv1.weight 64x64x1x1',
      'layer1.0.bn1.weight 64',
      'layer1.0.bn1.bias 64',
    ]);
    expect(shapesOf(network('torchvision-resnet50'))).toContain(
      'layer2.0.downsample.0.weight 512x256x1x1',
    );
    const bert = shapesOf(network('bert-base'));
    expect(bert[0]).toBe('embeddings.word_embeddings.weight 30522x768');
    expect(bert).toContain('encoder.layer.11.attention.self.query.weight 768x768');
    expect(bert.at(-1)).toBe('pooler.dense.bias 768');
  });

  it('has names that are unique in every network', () => {
    for (const { name, numLayers, imageShape } of listNetworks()) {
      const found = network(name, {
        allParams: true,
        ...(numLayers[0] === undefined ? {} : { numLayers: numLayers[0] }),
        ...(imageShape === undefined ? {} : { imageShape }),
      });
      const names = found.parameters.map((parameter) => parameter.name);
      expect(new Set(names).size, name).toBe(names.length);
      expect(found.elements, name).toBe(sizes(found).reduce((sum, size) => sum + size, 0));
    }
  });
});

describe('what cannot be built', () => {
  it.each<readonly [string, NetworkOptions, readonly string[]]>([
    ['vgg', {}, ['11, 13, 16, 19', '152']],
    ['resnet', { numLayers: 51 }, ['18, 34, 50, 101, 152, 200, 269', '51']],
    ['resnet', { numLayers: 51, imageShape: [3, 28, 28] }, ['2 + 6k', '51']],
    ['resnet', { numLayers: 2, imageShape: [3, 28, 28] }, ['2 + 6k']],
    ['inception-v3', {}, ['3,299,299', '3,224,224', '5x5']],
    ['inception-v4', {}, ['3,299,299', '3,224,224']],
    ['mobilenet', { multiplier: 0.3 }, ['0.25, 0.5, 0.75, 1', '0.3']],
    ['mobilenet', { imageShape: [3, 96, 96] }, ['3,224,224', '3x3']],
    ['resnet50', {}, ['resnet, resnet-v1', "'resnet50'"]],
    ['lenet', { numClasses: 0 }, ['numClasses', '0']],
    ['lenet', { imageShape: [3, 224.5, 224] }, ['imageShape', '224.5']],
  ])('%s %o', (name, options, parts) => {
    const attempt = (): unknown => network(name as NetworkName, options);
    expect(attempt).toThrow(RangeError);
    expect(attempt).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }));
    for (const part of parts) expect(attempt).toThrow(part);
  });

  it('ignores a depth where there is one only, as the original does', () => {
    expect(network('mobilenetv2', { numLayers: 50 }).elements).toBe(
      network('mobilenetv2').elements,
    );
  });

  it("takes the original's second name of resnet-v1", () => {
    expect(network('resnetv1', { numLayers: 50 }).name).toBe('resnet-v1');
  });
});
