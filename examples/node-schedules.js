// Run: node examples/node-schedules.js
import { exponentialMachineSchedule, innerOuterExponentialSchedule } from 'gradlink/topology';
import { innerOuterRingSchedule } from 'gradlink/topology';

const place = { size: 12, ranksPerNode: 4, rank: 1 }; // rank 1 of three nodes with four ranks each
const byNode = exponentialMachineSchedule(place).next().value;
console.log(`node 0 sends to node ${byNode.destinations}`);
for (const schedule of [innerOuterRingSchedule(place), innerOuterExponentialSchedule(place)])
  console.log([1, 2, 3].map(() => schedule.next().value.destinations.join()).join(' '));
// Prints: node 0 sends to node 1
// Prints: 2 5 3
// Prints: 2 9 3
