// Run: node examples/all-reduce.js
import { Communicator } from 'gradlink';

const group = Communicator.local(4); // four ranks in this process
const gradients = [0, 1, 2, 3].map((rank) => new Float32Array(1000).fill(rank));
await group.allReduce(gradients); // each is the sum now
console.log(gradients.map((gradient) => gradient[999]).join(' '));
await group.close();
// Prints: 6 6 6 6
