// Run: node examples/sweep-link.js
import { linkOfSweep, runCollectives, validateSweep } from 'gradlink/measure';

const sizes = [1e3, 1e4, 1e5, 1e6, 4e6];
const report = await runCollectives({ collective: 'all_reduce', ranks: 2, sizes, iterations: 5 });
const link = linkOfSweep(report, 'today'); // latency and bandwidth that explain the sweep
console.log(link.collective, link.ranks, 'ranks', link.regimes.length > 0);
const points = sizes.map((bytes) => ({ bytes, seconds: 1e-5 + bytes / 1e10 }));
console.log(validateSweep('made up', points).rows.length, 'sizes left out and predicted');
// Prints: all_reduce 2 ranks true
// Prints: 2 sizes left out and predicted
