// The names of the networks.
import { notOneOf } from '../checks.js';

/** Networks by name, in the order of the documentation. */
export const networkNames = [
  'resnet',
  'resnet-v1',
  'resnext',
  'alexnet',
  'vgg',
  'lenet',
  'mlp',
  'googlenet',
  'inception-bn',
  'inception-v3',
  'inception-v4',
  'inception-resnet-v2',
  'mobilenet',
  'mobilenetv2',
  'torchvision-resnet50',
  'bert-base',
] as const;

/** A network under its own name. */
export type FamilyName = (typeof networkNames)[number];

/** MXNet has two names for this network. */
export const aliases = { resnetv1: 'resnet-v1' } as const satisfies Readonly<
  Record<string, FamilyName>
>;

/** A name for {@link network}. */
export type NetworkName = FamilyName | keyof typeof aliases;

/** Whether a value, such as a command-line argument, names a network. */
export function isNetworkName(name: unknown): name is NetworkName {
  return (networkNames as readonly unknown[]).includes(name) || isAlias(name);
}

function isAlias(name: unknown): name is keyof typeof aliases {
  return typeof name === 'string' && Object.hasOwn(aliases, name);
}

/**
 * The canonical name of a network.
 *
 * @throws RangeError `ERR_OUT_OF_RANGE` that lists the names.
 */
export function familyName(name: unknown): FamilyName {
  if (!isNetworkName(name)) {
    throw notOneOf(name, 'network', networkNames, { code: 'ERR_OUT_OF_RANGE' });
  }
  return isAlias(name) ? aliases[name] : name;
}
