// The names of what can be trained, on what and by what: apart from the modules that load TensorFlow.js to do it.

/** Models that `gradlink train` knows. */
export const modelNames = [
  'resnet20',
  'resnet50',
  'mobilenetv2',
  'lenet',
  'mlp',
  'bert-tiny',
] as const;
/** A network by its name. */
export type ModelName = (typeof modelNames)[number];

/** Sets of samples that `gradlink train` knows. */
export const datasetNames = ['cifar10', 'imagenet', 'mnist', 'tokens'] as const;
/** What it is trained on. */
export type DatasetName = (typeof datasetNames)[number];

/** The fastest first: the first that is installed is the default. */
export const backendNames = ['node-gpu', 'node', 'wasm', 'cpu'] as const;
/** A backend of TensorFlow.js by its short name. */
export type BackendName = (typeof backendNames)[number];
