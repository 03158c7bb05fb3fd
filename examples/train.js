// Run: npx gradlink launch -n 2 node examples/train.js model.json
// Trains on several processes; run again, it goes on where it ended. What is marked 1 to 5 is all that more than one takes.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import * as tf from '@tensorflow/tfjs-core';
import * as layers from '@tensorflow/tfjs-layers';
import { Communicator } from 'gradlink';
import { Batches, DistributedDataParallel, openDataset, useBackend } from 'gradlink/tfjs';

const [file = 'model.json', stepsToGo = '60'] = process.argv.slice(2);
const comm = await Communicator.world(); // 1. this process's rank; started alone, a world of one
const { rank, size } = comm;
await useBackend();

const images = openDataset('mnist'); // made-up images; any { samples, sampleShape, read() } will do
const train = { ...images, samples: 50_000 };
const batches = new Batches(train, { batchSize: 32, rank, size }); // 2. each rank has its share

// One file, with any backend. With tfjs-node, 'file://folder' does for both save and load.
const storage = {
  save({ modelTopology, weightSpecs, weightData, userDefinedMetadata }) {
    const weights = Buffer.from(weightData).toString('base64');
    const text = JSON.stringify({ modelTopology, weightSpecs, weights, userDefinedMetadata });
    writeFileSync(`${file}.new`, text); // a run that is ended meanwhile leaves the last one whole
    renameSync(`${file}.new`, file);
    return { modelArtifactsInfo: { dateSaved: new Date(), modelTopologyType: 'JSON' } };
  },
  load() {
    const { weights, ...rest } = JSON.parse(readFileSync(file, 'utf8'));
    return { ...rest, weightData: Uint8Array.from(Buffer.from(weights, 'base64')).buffer };
  },
};
const fresh = () =>
  layers.sequential({
    layers: [
      layers.layers.flatten({ inputShape: images.sampleShape }),
      layers.layers.dense({ units: 32, activation: 'relu' }),
      layers.layers.dense({ units: images.classes }),
    ],
  });
const resumes = rank === 0 && existsSync(file);
const model = resumes ? await layers.loadLayersModel(storage) : fresh();
const ddp = await DistributedDataParallel.create(model, comm); // 3. all start from rank 0's weights
const [begin] = await comm.broadcast(Int32Array.of(model.getUserDefinedMetadata()?.samples ?? 0));
if (rank === 0) console.log(begin > 0 ? `goes on after ${begin} samples` : 'starts');

const optimizer = tf.train.sgd(0.01 * size); // 4. as many times the samples, as many times the step
let samples = begin;
for (let step = 0; step < Number(stepsToGo); ++step, samples += batches.samplesPerStep) {
  const { inputs, labels } = batches.at(samples);
  const x = tf.tensor(inputs, [labels.length, ...images.sampleShape]);
  const y = tf.tidy(() => tf.oneHot(tf.tensor1d(labels, 'int32'), images.classes));
  const loss = await ddp.step(optimizer, () =>
    tf.losses.softmaxCrossEntropy(y, model.apply(x, { training: true })),
  );
  if (rank === 0 && step % 20 === 0) console.log(`loss ${loss.dataSync()[0].toFixed(3)}`);
  tf.dispose([x, y, loss]);
}

if (rank === 0) {
  model.setUserDefinedMetadata({ samples });
  await model.save(storage); // 5. all have the same weights: one writes them
  const held = new Batches(
    { ...images, read: (i, into) => images.read(50_000 + i, into), samples: 1000 },
    { batchSize: 1000 },
  );
  const { inputs, labels } = held.at(0);
  const guessed = tf.argMax(model.predict(tf.tensor(inputs, [1000, ...images.sampleShape])), 1);
  const right = guessed.dataSync().filter((label, i) => label === labels[i]).length;
  console.log(`${size} ranks, ${samples} samples, ${right / 10} % of 1000 others right`);
}
await comm.close();
