import type { SymbolicTensor } from '@tensorflow/tfjs-layers';

import { apply, imagesOf, join, type LayerMaker, type ModelKind } from './types.js';

/**
 * ResNet-20 of He et al. for CIFAR-10. Shortcuts between stages have no weights: they subsample pixels and add zero
 * channels. 269,722 trainable parameters.
 */
export const resnet20: ModelKind = {
  description: 'ResNet-20 for CIFAR-10, 269,722 parameters',
  inputShape: [32, 32, 3],
  classes: 10,
  inputType: 'float32',
  sampleName: 'img',
  wrongShape: imagesOf(8),
  build(maker, shape, classes) {
    const { layers } = maker;
    const convolve = (x: SymbolicTensor, filters: number, strides: number): SymbolicTensor => {
      const convolved = apply(
        layers.conv2d({
          filters,
          strides,
          kernelSize: 3,
          padding: 'same',
          useBias: false,
          kernelInitializer: maker.he(),
        }),
        x,
      );
      return apply(layers.batchNormalization({ momentum: 0.9, epsilon: 1e-5 }), convolved);
    };
    const relu = (x: SymbolicTensor): SymbolicTensor => apply(layers.reLU(), x);
    const input = maker.input(shape);
    let x = relu(convolve(input, 16, 1));
    for (const [stage, filters] of [16, 32, 64].entries()) {
      for (let block = 0; block < 3; ++block) {
        const narrows = stage > 0 && block === 0;
        let shortcut = x;
        if (narrows) {
          const half = filters / 4;
          shortcut = apply(
            layers.maxPooling2d({ poolSize: 1, strides: 2, padding: 'same' }),
            shortcut,
          );
          // `channelsFirst` on channels-last data pads width and channels.
          shortcut = apply(
            layers.zeroPadding2d({
              dataFormat: 'channelsFirst',
              padding: [
                [0, 0],
                [half, half],
              ],
            }),
            shortcut,
          );
        }
        const inner = relu(convolve(x, filters, narrows ? 2 : 1));
        x = relu(join(layers.add(), [convolve(inner, filters, 1), shortcut]));
      }
    }
    return maker.model(input, classifier(maker, x, classes));
  },
};

/** Keras' ResNet-50, with biases in its convolutions. For CIFAR-10 23,555,082 trainable parameters in 214 variables. */
export const resnet50: ModelKind = {
  description: 'ResNet-50 as in Keras, 23,555,082 parameters with 10 classes',
  inputShape: [32, 32, 3],
  classes: 10,
  inputType: 'float32',
  sampleName: 'img',
  wrongShape: imagesOf(32),
  build(maker, shape, classes) {
    const { layers } = maker;
    const convolve = (
      x: SymbolicTensor,
      filters: number,
      kernelSize: number,
      strides = 1,
    ): SymbolicTensor => {
      const convolved = apply(
        layers.conv2d({
          filters,
          kernelSize,
          strides,
          padding: 'same',
          kernelInitializer: maker.glorot(),
        }),
        x,
      );
      return apply(layers.batchNormalization({ momentum: 0.99, epsilon: 1.001e-5 }), convolved);
    };
    const relu = (x: SymbolicTensor): SymbolicTensor => apply(layers.reLU(), x);
    const input = maker.input(shape);
    let x = relu(convolve(input, 64, 7, 2));
    x = apply(layers.maxPooling2d({ poolSize: 3, strides: 2, padding: 'same' }), x);
    const stages = [
      [64, 3],
      [128, 4],
      [256, 6],
      [512, 3],
    ] as const;
    for (const [stage, [filters, blocks]] of stages.entries()) {
      for (let block = 0; block < blocks; ++block) {
        const strides = stage > 0 && block === 0 ? 2 : 1;
        const shortcut = block === 0 ? convolve(x, 4 * filters, 1, strides) : x;
        let inner = relu(convolve(x, filters, 1, strides));
        inner = relu(convolve(inner, filters, 3));
        inner = convolve(inner, 4 * filters, 1);
        x = relu(join(layers.add(), [shortcut, inner]));
      }
    }
    return maker.model(input, classifier(maker, x, classes));
  },
};

/** Global average pooling and a dense layer, which gives logits. */
export function classifier(maker: LayerMaker, x: SymbolicTensor, classes: number): SymbolicTensor {
  const { layers } = maker;
  const pooled = apply(layers.globalAveragePooling2d({}), x);
  return apply(layers.dense({ units: classes, kernelInitializer: maker.glorot() }), pooled);
}
