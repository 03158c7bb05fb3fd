// Run: npx gradlink launch -n 2 node examples/window.js
import { Communicator, GradlinkError, NeighborWindow } from 'gradlink';

const comm = await Communicator.world();
const window = await comm.createWindow(Float32Array.of(comm.rank * 10));
await window.put(window.array); // into the neighbour's buffer, which need not do anything
await comm.barrier();
await window.update(); // the average of one's own and what came
if (comm.rank === 0) console.log(window instanceof NeighborWindow, window.array[0]);
await comm.close();
const closed = await comm.barrier().catch((error) => error);
if (closed instanceof GradlinkError && closed.code !== 'ERR_CLOSED') throw closed;
// Prints: true 5
