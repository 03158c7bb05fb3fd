import { Builder, type Tensor } from './builder.js';
import { standardImage, type Family } from './types.js';
import type { NetworkChoice, Parameter } from './types.js';

// Units of each stage by depth, for large images.
const unitsByDepth = new Map<number, readonly number[]>([
  [18, [2, 2, 2, 2]],
  [34, [3, 4, 6, 3]],
  [50, [3, 4, 6, 3]],
  [101, [3, 4, 23, 3]],
  [152, [3, 8, 36, 3]],
  [200, [3, 24, 36, 3]],
  [269, [3, 30, 48, 8]],
]);

const smallImages = '2 + 6k below 164 (8, 14, ..., 158) and 2 + 9k from 164 on (164, 173, ...)';

interface Plan {
  readonly units: readonly number[];
  readonly stem: number;
  readonly widths: readonly number[];
  readonly bottleneck: boolean;
}

interface Variant {
  readonly name: 'resnet' | 'resnet-v1' | 'resnext';
  readonly description: string;
  /** Up to this height the network has three stages and other depths. */
  readonly smallHeight: number;
  readonly unit: (builder: Builder, input: Tensor, unit: Unit) => Tensor;
}

interface Unit {
  readonly name: string;
  readonly filters: number;
  readonly stride: number;
  readonly bottleneck: boolean;
  /** Whether the first unit of every stage projects its shortcut, including the first stage and basic blocks. */
  readonly projects: boolean;
}

function planOf(variant: Variant, { numLayers, imageShape }: NetworkChoice): Plan | undefined {
  if (imageShape[1] <= variant.smallHeight) {
    const deep = numLayers >= 164;
    const units = (numLayers - 2) / (deep ? 9 : 6);
    if (!Number.isInteger(units) || units < 1) return undefined;
    return {
      units: [units, units, units],
      stem: 16,
      widths: deep ? [64, 128, 256] : [16, 32, 64],
      bottleneck: deep,
    };
  }
  const units = unitsByDepth.get(numLayers);
  if (units === undefined) return undefined;
  const bottleneck = numLayers >= 50;
  return {
    units,
    stem: 64,
    widths: bottleneck ? [256, 512, 1024, 2048] : [64, 128, 256, 512],
    bottleneck,
  };
}

function build(variant: Variant, choice: NetworkChoice): readonly Parameter[] {
  const plan = planOf(variant, choice);
  if (plan === undefined) return [];
  const builder = new Builder({ bias: false });
  const normalizesBefore = variant.name === 'resnet';
  let body = builder.input(choice.imageShape);
  // Only resnet-v1 does not normalise the image.
  if (variant.name !== 'resnet-v1') builder.batchNorm(body, 'bn_data');
  if (choice.imageShape[1] <= 32) {
    body = builder.conv(body, { name: 'conv0', filters: plan.stem, kernel: 3, pad: 1 });
    if (variant.name === 'resnet-v1') builder.batchNorm(body, 'bn0');
  } else {
    body = builder.conv(body, { name: 'conv0', filters: plan.stem, kernel: 7, stride: 2, pad: 3 });
    builder.batchNorm(body, 'bn0');
    body = builder.pool(body, 3, 2, 1);
  }
  for (const [stage, units] of plan.units.entries()) {
    for (let index = 0; index < units; index += 1) {
      const first = index === 0;
      body = variant.unit(builder, body, {
        name: `stage${stage + 1}_unit${index + 1}`,
        filters: plan.widths[stage] ?? 0,
        stride: first && stage > 0 ? 2 : 1,
        bottleneck: plan.bottleneck,
        projects: first,
      });
    }
  }
  if (normalizesBefore) builder.batchNorm(body, 'bn1');
  builder.fullyConnected(builder.globalPool(body), choice.numClasses, 'fc1');
  return builder.parameters;
}

/** Version 2: normalisation before each convolution; the shortcut is projected after the first one. */
function preActivationUnit(builder: Builder, input: Tensor, unit: Unit): Tensor {
  const { name, filters, stride } = unit;
  builder.batchNorm(input, `${name}_bn1`);
  let body: Tensor;
  if (unit.bottleneck) {
    body = builder.conv(input, { name: `${name}_conv1`, filters: filters / 4 });
    builder.batchNorm(body, `${name}_bn2`);
    body = builder.conv(body, {
      name: `${name}_conv2`,
      filters: filters / 4,
      kernel: 3,
      stride,
      pad: 1,
    });
    builder.batchNorm(body, `${name}_bn3`);
    body = builder.conv(body, { name: `${name}_conv3`, filters });
  } else {
    body = builder.conv(input, { name: `${name}_conv1`, filters, kernel: 3, stride, pad: 1 });
    builder.batchNorm(body, `${name}_bn2`);
    body = builder.conv(body, { name: `${name}_conv2`, filters, kernel: 3, pad: 1 });
  }
  if (unit.projects) builder.conv(input, { name: `${name}_sc`, filters, stride });
  return body;
}

/** Version 1 and resnext: normalisation after each convolution, including the shortcut's. */
function postActivationUnit(shape: {
  /** Filters of the inner convolutions, as a share of the unit's. */
  readonly inner: number;
  readonly groups: number;
  readonly strideAt: 'first' | 'middle';
  readonly projection: string;
  readonly projectionNorm: string;
}) {
  return (builder: Builder, input: Tensor, unit: Unit): Tensor => {
    const { name, filters, stride } = unit;
    const normalized = (body: Tensor, index: number): Tensor =>
      builder.batchNorm(body, `${name}_bn${index}`);
    let body: Tensor;
    if (unit.bottleneck) {
      const inner = filters * shape.inner;
      const atFirst = shape.strideAt === 'first';
      const conv1 = { name: `${name}_conv1`, filters: inner, stride: atFirst ? stride : 1 };
      body = normalized(builder.conv(input, conv1), 1);
      const conv2 = {
        name: `${name}_conv2`,
        filters: inner,
        kernel: 3,
        pad: 1,
        groups: shape.groups,
      };
      body = normalized(builder.conv(body, { ...conv2, stride: atFirst ? 1 : stride }), 2);
      body = normalized(builder.conv(body, { name: `${name}_conv3`, filters }), 3);
    } else {
      const conv1 = { name: `${name}_conv1`, filters, kernel: 3, stride, pad: 1 };
      body = normalized(builder.conv(input, conv1), 1);
      body = normalized(
        builder.conv(body, { name: `${name}_conv2`, filters, kernel: 3, pad: 1 }),
        2,
      );
    }
    if (unit.projects) {
      const shortcut = builder.conv(input, { name: `${name}${shape.projection}`, filters, stride });
      builder.batchNorm(shortcut, `${name}${shape.projectionNorm}`);
    }
    return body;
  };
}

function family(variant: Variant): Family {
  return {
    name: variant.name,
    description: variant.description,
    numLayers: [...unitsByDepth.keys()],
    smallImages: `height up to ${variant.smallHeight}: ${smallImages}`,
    multipliers: [],
    imageShape: standardImage,
    acceptsDepth: (choice) => planOf(variant, choice) !== undefined,
    describeDepths: ({ imageShape }) =>
      imageShape[1] <= variant.smallHeight ? smallImages : [...unitsByDepth.keys()].join(', '),
    build: (choice) => build(variant, choice),
  };
}

export const residualNetworks: readonly Family[] = [
  family({
    name: 'resnet',
    description: 'ResNet version 2 (pre-activation)',
    smallHeight: 28,
    unit: preActivationUnit,
  }),
  family({
    name: 'resnet-v1',
    description: 'ResNet version 1',
    smallHeight: 28,
    unit: postActivationUnit({
      inner: 1 / 4,
      groups: 1,
      strideAt: 'first',
      projection: '_conv1sc',
      projectionNorm: '_sc',
    }),
  }),
  family({
    name: 'resnext',
    description: 'ResNeXt with 32 groups',
    smallHeight: 32,
    unit: postActivationUnit({
      inner: 1 / 2,
      groups: 32,
      strideAt: 'middle',
      projection: '_sc',
      projectionNorm: '_sc_bn',
    }),
  }),
];
