// Networks by name: their arrays and options.
import { argumentError, describe } from '../errors.js';
import { elementBytes, parseDType, type DType } from '../tensor/dtype.js';
import { anInteger, listOf, maxInt32, optionNames, optionsObject } from '../checks.js';
import { bertBase } from './bert.js';
import { ImpossibleShape } from './builder.js';
import { googlenet } from './googlenet.js';
import { inceptionBn } from './inception-bn.js';
import { inceptionResnetV2 } from './inception-resnet-v2.js';
import { inceptionV3 } from './inception-v3.js';
import { inceptionV4 } from './inception-v4.js';
import { mobileNetworks } from './mobilenet.js';
import { familyName } from './names.js';
import type { NetworkName } from './names.js';
import { plainNetworks } from './plain.js';
import { residualNetworks } from './resnet.js';
import { torchvisionResnet50 } from './torchvision.js';
import {
  standardImage,
  type Family,
  type ImageShape,
  type Network,
  type NetworkChoice,
  type NetworkInfo,
  type NetworkOptions,
  type Parameter,
} from './types.js';

const families: readonly Family[] = [
  ...residualNetworks,
  ...plainNetworks,
  googlenet,
  inceptionBn,
  inceptionV3,
  inceptionV4,
  inceptionResnetV2,
  ...mobileNetworks,
  torchvisionResnet50,
  bertBase,
];

const networkOptions = optionNames<NetworkOptions>({
  numLayers: true,
  imageShape: true,
  numClasses: true,
  allParams: true,
  multiplier: true,
});

/** Far deeper than any trained network; each layer is an array of the list. */
const maxLayers = 10_000;

/** All networks with their options, in the order of the documentation. */
export function listNetworks(): readonly NetworkInfo[] {
  return families.map(({ name, description, numLayers, smallImages, multipliers, imageShape }) => ({
    name,
    description,
    numLayers,
    multipliers,
    ...(smallImages === undefined ? {} : { smallImages }),
    ...(imageShape === undefined ? {} : { imageShape }),
  }));
}

/**
 * The arrays of a network in the order of MXNet's keys (torchvision and BERT: PyTorch's order).
 *
 * @param name one of {@link listNetworks}; for names known only at run time see {@link isNetworkName}
 * @throws RangeError `ERR_OUT_OF_RANGE` for an unknown network, depth, width or image; the message lists the possible
 *   ones
 */
export function network(name: NetworkName, given?: NetworkOptions): Network {
  const own = familyName(name);
  const options = optionsObject(given, networkOptions, 'network');
  const family = families.find((one) => one.name === own)!;
  const choice: NetworkChoice = {
    numLayers: wholeNumber('numLayers', options.numLayers ?? 152, maxLayers),
    imageShape: checkedImage(options.imageShape ?? standardImage),
    numClasses: wholeNumber('numClasses', options.numClasses ?? 1000),
    multiplier: options.multiplier ?? 1,
  };
  if (family.acceptsDepth?.(choice) === false) {
    const depths = family.describeDepths?.(choice) ?? '';
    throw argumentError(
      'ERR_OUT_OF_RANGE',
      `numLayers of ${family.name} at image shape ${choice.imageShape.join(',')}`,
      `one of ${depths}`,
      choice.numLayers,
    );
  }
  if (family.multipliers.length > 0 && !family.multipliers.includes(choice.multiplier)) {
    const widths = `one of ${family.multipliers.join(', ')}`;
    throw argumentError(
      'ERR_OUT_OF_RANGE',
      `multiplier of ${family.name}`,
      widths,
      choice.multiplier,
    );
  }
  const all = buildArrays(family, choice);
  const parameters = options.allParams === true ? all : all.filter(isCounted);
  const elements = parameters.reduce((sum, { shape }) => sum + elementsOf(shape), 0);
  return {
    name: family.name,
    parameters,
    elements,
    bytes: (dtype: DType = 'float32') => elements * (elementBytes[parseDType(dtype)] ?? 0),
  };
}

const shapeKind = listOf(anInteger(0, Number.MAX_SAFE_INTEGER));

/** Number of elements of an array of this shape. */
export function elementsOf(shape: readonly number[]): number {
  shapeKind(shape, 'shape');
  return shape.reduce((product, extent) => product * extent, 1);
}

function buildArrays(family: Family, choice: NetworkChoice): readonly Parameter[] {
  try {
    return family.build(choice);
  } catch (error) {
    if (!(error instanceof ImpossibleShape)) throw error;
    const usual = (family.imageShape ?? standardImage).join(',');
    throw argumentError(
      'ERR_OUT_OF_RANGE',
      `imageShape of ${family.name}`,
      `a larger image, such as ${usual},`,
      { text: `${choice.imageShape.join(',')} (${error.message})` },
    );
  }
}

/** The arrays that MXNet's tool counts. */
function isCounted({ name }: Parameter): boolean {
  return name.includes('weight') || name.includes('bias');
}

function wholeNumber(name: string, value: number, most = maxInt32): number {
  if (!Number.isSafeInteger(value) || value < 1 || value > most) {
    throw argumentError('ERR_OUT_OF_RANGE', name, `a whole number from 1 to ${most}`, value);
  }
  return value;
}

function checkedImage(shape: ImageShape): ImageShape {
  const values: readonly number[] = shape;
  if (
    !Array.isArray(shape) ||
    values.length !== 3 ||
    !values.every((value) => Number.isSafeInteger(value) && value >= 1)
  ) {
    throw argumentError(
      'ERR_OUT_OF_RANGE',
      'imageShape',
      'three whole numbers (channels, height, width), such as 3,224,224',
      { text: Array.isArray(shape) ? `[${values.map(describe).join(', ')}]` : describe(shape) },
    );
  }
  return shape;
}
