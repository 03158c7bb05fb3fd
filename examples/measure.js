// Run: node examples/measure.js
import { runCollectives } from 'gradlink/measure';

const options = { collective: 'all_reduce', ranks: 2, sizes: [65536], iterations: 6 };
const { cases } = await runCollectives(options, {
  onProgress: (done, total) => console.log(`${done} of ${total} sizes`),
});
for (const { parameters, check, limit } of cases)
  console.log(`${parameters.placement}: ${check.wrong} wrong, ${limit.ratio > 0 ? 'judged' : ''}`);
// Prints: 0 of 1 sizes
// Prints: 1 of 1 sizes
// Prints: out-of-place: 0 wrong, judged
// Prints: in-place: 0 wrong, judged
