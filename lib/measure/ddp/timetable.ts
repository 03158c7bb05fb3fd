// A schedule of ResNet-50's gradients: the communication of data-parallel training without a model.
import { network } from '../../models/index.js';
import { elementsOf } from '../../train/buckets/plan.js';
import type { GradientSpec } from '../../train/buckets/types.js';

/** torchvision's resnet50: 161 gradients, 102,228,128 bytes, in PyTorch's order of registration. */
export function resnet50Gradients(): readonly GradientSpec[] {
  return network('torchvision-resnet50').parameters.map(({ name, shape }) => ({ name, shape }));
}

/** Output size of the first convolution for images of 224 x 224. */
const sideOfStem = 112;
const sideOfStage = [56, 28, 14, 7] as const;

/** The number of positions that a layer's weights apply to. */
function placesOf(name: string): number {
  const [, stage, unit, layer] = /^layer([1-4])\.(\d+)\.(\w+)/.exec(name) ?? [];
  if (stage === undefined) return name.startsWith('conv1') ? sideOfStem ** 2 : 1;
  const at = Number(stage) - 1;
  // A stage's first unit halves the size in its second convolution.
  const entry = unit === '0' && layer === 'conv1' && at > 0;
  return (sideOfStage[entry ? at - 1 : at] ?? 1) ** 2;
}

/**
 * When each gradient is computed, as a share of the backward pass: layers in reverse, in proportion to their
 * multiplications; normalisations together with their convolutions.
 *
 * @returns in the order of the gradients, in (0, 1]
 */
export function releaseShares(gradients: readonly GradientSpec[]): number[] {
  const work = gradients.map((gradient) =>
    gradient.shape.length > 1 ? elementsOf(gradient) * placesOf(gradient.name) : 0,
  );
  const total = work.reduce((sum, one) => sum + one, 0);
  const shares = new Array<number>(gradients.length);
  let done = 0;
  for (let index = gradients.length - 1; index >= 0; index -= 1) {
    done += work[index]!;
    shares[index] = done / total;
  }
  return shares;
}
