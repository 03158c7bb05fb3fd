// Run: npx gradlink launch -n 2 node examples/batch-norm.js
import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import { Communicator } from 'gradlink';
import { SyncBatchNormalization, convertSyncBatchNormalization } from 'gradlink/tfjs';
import { useBackend, useSyncBatchNormalization } from 'gradlink/tfjs';

await useBackend('cpu');
const comm = await Communicator.world();
const norm = layers.layers.batchNormalization({ inputShape: [1], momentum: 0 });
const model = await convertSyncBatchNormalization(layers.sequential({ layers: [norm] }), comm);
const count = useSyncBatchNormalization(model, comm); // needed after loading a model
model.apply(tf.tensor2d([[comm.rank * 10]]), { training: true }); // 0 and 10: the mean is 5
const [mean] = model.weights[2].read().dataSync();
if (comm.rank === 0) console.log(model.layers[0] instanceof SyncBatchNormalization, count, mean);
await comm.close();
// Prints: true 1 5
