// Run: npx gradlink launch -n 2 node examples/checkpoint.js
import { rmSync } from 'node:fs';
import { Communicator } from 'gradlink';
import { completeCheckpoints, loadCheckpoint, saveCheckpoint } from 'gradlink/tfjs';

const comm = await Communicator.world();
const folder = `checkpoints-${process.ppid}`;
const labels = { model: 'mine' }; // what a run must be like to go on from here
const arrays = [{ name: 'w', shape: [1], data: Float32Array.of(comm.rank) }];
await saveCheckpoint(folder, comm, { step: 7, samplesSeen: 64, labels }, arrays);
const { checkpoint, arrays: own } = await loadCheckpoint(folder, comm, labels);
if (comm.rank === 1) console.log(checkpoint.step, own[0].name, own[0].data[0]);
if (comm.rank === 1) console.log(completeCheckpoints(folder).length, 'whole');
await comm.barrier();
if (comm.rank === 0) rmSync(folder, { recursive: true });
await comm.close();
// Prints: 7 w 1
// Prints: 1 whole
