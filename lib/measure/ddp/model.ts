// Computes gradients with a TensorFlow.js model. Imports TensorFlow.js, so load it only on request.
import type { Scalar, Tensor } from '@tensorflow/tfjs-core';

import type { Communicator } from '../../communicator/communicator.js';
import { useBackend } from '../../train/backends.js';
import { assignBeforeOverflow } from '../../train/buckets/assign.js';
import { elementsOf } from '../../train/buckets/plan.js';
import { GradientReducer } from '../../train/buckets/reducer.js';
import type { BucketPlan } from '../../train/buckets/types.js';
import { Batches, openDataset } from '../../train/data/index.js';
import { DistributedDataParallel } from '../../train/data-parallel.js';
import { buildModel } from '../../train/models/index.js';
import { layers, tf } from '../../train/tfjs.js';
import { specsOf, trainableVariables } from '../../train/variables.js';
import { spanOf } from './synthetic.js';
import type {
  DdpOption,
  DdpTrainer,
  DdpWorkload,
  StepTimes,
  ModelWorkloadOptions,
} from './step.js';

class ModelTrainer implements DdpTrainer {
  /** The same buckets, for collectives without a model. */
  #bare: GradientReducer | undefined;

  constructor(
    private readonly communicator: Communicator,
    private readonly ddp: DistributedDataParallel,
    private readonly loss: () => Scalar,
  ) {}

  get plan(): readonly BucketPlan[] {
    return this.ddp.buckets;
  }

  async #pass(): Promise<StepTimes> {
    const { value, gradients } = await this.ddp.gradients(this.loss);
    tf.dispose([value, ...gradients.map(({ tensor }) => tensor)]);
    const { forwardSeconds, backwardSeconds } = this.ddp.times!;
    return { forwardSeconds, backwardSeconds };
  }

  prepare(): void {
    // A model needs no preparation.
  }

  step(): Promise<StepTimes> {
    return this.#pass();
  }

  async alone(): Promise<{ backwardSeconds: number; communicationSeconds: number }> {
    const { backwardSeconds } = await this.ddp.noSync(() => this.#pass());
    // Discards gradients accumulated outside a step.
    await this.#pass();
    const specs = specsOf(this.ddp.variables);
    const buckets = this.plan.map(({ gradients }) => gradients);
    this.#bare ??= new GradientReducer(this.communicator, specs, { buckets });
    await this.communicator.barrier();
    this.#bare.begin({ uses: new Uint8Array(specs.length) });
    return { backwardSeconds, communicationSeconds: spanOf(await this.#bare.finish()) };
  }

  countWrong(): null {
    return null;
  }
}

export async function modelWorkload(options: ModelWorkloadOptions): Promise<DdpWorkload> {
  const backend = await useBackend(options.backend, { allowCpu: options.allowCpu });
  const { rank, size, batchSize } = options;
  const dataset = openDataset(options.dataset);
  const model = buildModel({ core: tf, layers }, options.model, {
    inputShape: dataset.sampleShape,
    classes: dataset.classes,
    vocabulary: dataset.vocabulary,
  });
  const batch = new Batches(dataset, { batchSize, rank, size }).at(0);
  const inputs = tf.tensor(batch.inputs, [batchSize, ...dataset.sampleShape], dataset.inputType);
  const labels = tf.oneHot(tf.tensor1d(batch.labels, 'int32'), dataset.classes);
  const loss = (): Scalar =>
    tf.losses.softmaxCrossEntropy(labels, model.apply(inputs, { training: true }) as Tensor);
  const specs = specsOf(trainableVariables(model));
  const elements = specs.map(elementsOf);
  return {
    model: options.model,
    description: `${options.model} on ${dataset.name}, batch ${batchSize} a rank, TensorFlow.js ${backend.version} (${backend.name}, on the ${backend.device})`,
    synthetic: false,
    gradientBytes: elements.reduce((sum, count) => sum + count * 4, 0),
    gradients: specs.length,
    async open(communicator, option: DdpOption) {
      const { mode, bucketCapBytes, firstBucketBytes, capacityElements, timeline } = option;
      const buckets =
        capacityElements === undefined
          ? undefined
          : assignBeforeOverflow(elements, capacityElements);
      const ddp = await DistributedDataParallel.create(model, communicator, {
        mode,
        bucketCapBytes,
        firstBucketBytes,
        buckets,
        timeline,
      });
      return new ModelTrainer(communicator, ddp, loss);
    },
  };
}
