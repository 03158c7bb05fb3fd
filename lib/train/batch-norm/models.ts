// Makes all batch normalisation layers of a model use all ranks.
import type * as Layers from '@tensorflow/tfjs-layers';

import type { Communicator } from '../../communicator/communicator.js';
import { argumentError } from '../../errors.js';
import { assertRankOnHost } from '../ranks.js';
import { layers as tfLayers, tf } from '../tfjs.js';
import { SyncBatchNormalization } from './layer.js';

/** A model's layers, including those of nested models and wrappers. */
function layersOf(holder: unknown): readonly unknown[] {
  const { layers, layer } = Object(holder) as { layers?: unknown; layer?: unknown };
  const own: unknown[] = [
    ...(Array.isArray(layers) ? (layers as unknown[]) : []),
    ...(layer === undefined ? [] : [layer]),
  ];
  return own.flatMap((one) => [one, ...layersOf(one)]);
}

/** @internal */
export function syncLayersOf(model: unknown): SyncBatchNormalization[] {
  return layersOf(model).filter((one) => one instanceof SyncBatchNormalization);
}

function assertModel(model: unknown): void {
  if (model instanceof tfLayers.LayersModel) return;
  throw argumentError('ERR_INVALID_ARG_TYPE', 'model', 'a tf.LayersModel', model);
}

/**
 * Sets the ranks of all {@link SyncBatchNormalization} layers of a model, in particular after loading it.
 *
 * @returns the number of these layers.
 */
export function useSyncBatchNormalization(model: Layers.LayersModel, comm: Communicator): number {
  assertModel(model);
  assertRankOnHost(comm, 'comm');
  const found = syncLayersOf(model);
  for (const layer of found) layer.use(comm);
  return found.length;
}

/**
 * A new model with {@link SyncBatchNormalization} instead of `tf.layers.batchNormalization` and the same weights, like
 * torch's `convert_sync_batchnorm`. The given model is unchanged. Compile the new one.
 */
export async function convertSyncBatchNormalization(
  model: Layers.LayersModel,
  comm: Communicator,
): Promise<Layers.LayersModel> {
  assertModel(model);
  assertRankOnHost(comm, 'comm');
  const text = JSON.stringify(model.toJSON(null, false), (_, value: unknown) => {
    const { class_name: name } = Object(value) as { class_name?: unknown };
    return name === 'BatchNormalization'
      ? { ...(value as object), class_name: SyncBatchNormalization.className }
      : value;
  });
  const converted = await tfLayers.models.modelFromJSON({
    modelTopology: JSON.parse(text) as object,
  } as never);
  // getWeights() is ordered by trainable flags.
  model.weights.forEach((weight, index) => {
    tf.tidy(() => {
      converted.weights[index]!.write(weight.read());
    });
  });
  useSyncBatchNormalization(converted, comm);
  return converted;
}
