// Run: node examples/gpu-arrays.js
import { Communicator, DeviceBuffer, gpuDevices, LocalGroup, pinnedArray } from 'gradlink';

const host = [0, 1].map((rank) => new Float32Array(4).fill(rank));
const pinned = (gpu) => pinnedArray('float32', 4).fill(gpu.ordinal);
try {
  const arrays = gpuDevices().map((gpu) => DeviceBuffer.from(gpu.ordinal, pinned(gpu)));
  const group = await Communicator.nccl();
  console.log(await group.allReduce(arrays));
} catch (error) {
  console.log(error.code); // no driver: the same on the host
  const group = Communicator.local(2);
  console.log(group instanceof LocalGroup, (await group.allReduce(host))[0][0]);
}
// Prints: ERR_BACKEND_UNAVAILABLE
// Prints: true 1
