// A rank of a job, whoever started it: mpirun, srun, torchrun's variables, or `gradlink launch`.
import { hostname } from 'node:os';

import { Communicator } from 'gradlink';

const world = await Communicator.world(); // over MPI, or where rank 0 listens: MASTER_ADDR:MASTER_PORT
const gradient = new Float32Array(1 << 20).fill(world.rank + 1);
await world.allReduce(gradient, { op: 'avg' });
console.log(`rank ${world.rank} of ${world.size} on ${hostname()}: mean ${gradient[0]}`);
await world.close();
