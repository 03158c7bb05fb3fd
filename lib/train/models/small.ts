// Networks that a CPU trains in seconds.
import type { SymbolicTensor } from '@tensorflow/tfjs-layers';

import { apply, imagesOf, type ModelKind } from './types.js';

/**
 * LeNet-5 with ReLU and max pooling. 62,006 trainable parameters for 32 by 32 pixels in colour, 61,706 for 28 by 28 in
 * grey, where the first convolution keeps the size.
 */
export const lenet: ModelKind = {
  description: 'LeNet-5, 62,006 parameters for CIFAR-10',
  inputShape: [32, 32, 3],
  classes: 10,
  inputType: 'float32',
  sampleName: 'img',
  wrongShape: imagesOf(16),
  build(maker, shape, classes) {
    const { layers } = maker;
    const input = maker.input(shape);
    const convolve = (x: SymbolicTensor, filters: number, padding: 'same' | 'valid') => {
      const convolved = apply(
        layers.conv2d({
          filters,
          kernelSize: 5,
          padding,
          activation: 'relu',
          kernelInitializer: maker.glorot(),
        }),
        x,
      );
      return apply(layers.maxPooling2d({ poolSize: 2, strides: 2 }), convolved);
    };
    let x = convolve(input, 6, (shape[0] ?? 0) < 32 ? 'same' : 'valid');
    x = apply(layers.flatten(), convolve(x, 16, 'valid'));
    for (const units of [120, 84]) {
      x = apply(layers.dense({ units, activation: 'relu', kernelInitializer: maker.glorot() }), x);
    }
    const logits = layers.dense({ units: classes, kernelInitializer: maker.glorot() });
    return maker.model(input, apply(logits, x));
  },
};

/** Two hidden layers of 512. 669,706 trainable parameters for MNIST's 28 by 28 pixels, 1,841,162 for CIFAR-10. */
export const mlp: ModelKind = {
  description: 'two hidden layers of 512, 1,841,162 parameters for CIFAR-10',
  inputShape: [32, 32, 3],
  classes: 10,
  inputType: 'float32',
  sampleName: 'img',
  wrongShape: (shape) =>
    shape.length > 0 && shape.every((length) => length > 0) ? undefined : 'sizes of at least 1',
  build(maker, shape, classes) {
    const { layers } = maker;
    const input = maker.input(shape);
    let x = shape.length > 1 ? apply(layers.flatten(), input) : input;
    for (const units of [512, 512]) {
      x = apply(layers.dense({ units, activation: 'relu', kernelInitializer: maker.glorot() }), x);
    }
    const logits = layers.dense({ units: classes, kernelInitializer: maker.glorot() });
    return maker.model(input, apply(logits, x));
  },
};
