// Run: node examples/pairs.js
import { pairKinds, runPairs } from 'gradlink/measure';

const report = await runPairs({ kinds: ['latency', 'bandwidth'], ranks: 2, sizes: [1024] });
for (const { name, status, bytes } of report.cases) console.log(name, status, bytes);
console.log(pairKinds.join(' '));
// Prints: latency ok 1024
// Prints: bandwidth ok 1024
// Prints: latency bandwidth bidirectional message_rate
