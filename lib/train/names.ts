// The names of models, data sets and backends, without loading TensorFlow.js.

/** Models of `gradlink train`. */
export const modelNames = [
  'resnet20',
  'resnet50',
  'mobilenetv2',
  'lenet',
  'mlp',
  'bert-tiny',
] as const;
/** The name of a network. */
export type ModelName = (typeof modelNames)[number];

/** Data sets of `gradlink train`. */
export const datasetNames = ['cifar10', 'imagenet', 'mnist', 'tokens'] as const;
/** The name of a data set. */
export type DatasetName = (typeof datasetNames)[number];

/** Fastest first: the first installed one is the default. */
export const backendNames = ['node-gpu', 'node', 'wasm', 'cpu'] as const;
/** The short name of a TensorFlow.js backend. */
export type BackendName = (typeof backendNames)[number];
