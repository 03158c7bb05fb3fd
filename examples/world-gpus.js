// Run: node examples/world-gpus.js
import { Communicator, DeviceBuffer, WorldGroup } from 'gradlink';

try {
  // Each process of a job lists its GPUs; started alone, it is the world.
  const world = await Communicator.world({ backend: 'nccl', gpus: [0] });
  const buffers = world.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', 1000));
  await world.allReduce(buffers);
  console.log(world instanceof WorldGroup, world.ranks, world.size);
  await world.neighborAllReduce(buffers);
  const [part] = await world.split(world.ranks.map((rank) => rank % 2)); // in all processes
  await part.allReduce([buffers[0]]);
  await world.close();
} catch (error) {
  console.log(error.code); // no driver
}
// Prints: ERR_BACKEND_UNAVAILABLE
