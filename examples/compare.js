// Run: node examples/compare.js
import { changes, compareRuns, countChanges, environmentChanges } from 'gradlink/measure';
import { hasMeasurement, hasRegressed, ratioOfMedians, runCollectives } from 'gradlink/measure';

const options = { collective: 'all_reduce', ranks: 2, sizes: [65536], iterations: 5 };
const run = async () => ({ name: 'today', reports: [await runCollectives(options)] });
const [before, after] = [await run(), await run()];
console.log(before.reports[0].cases.filter(hasMeasurement).length, 'measured;', changes.join());
console.log(environmentChanges(before.reports, after.reports).length, 'facts differ');
const counts = countChanges(compareRuns(before, after, { tolerance: 0.99 }));
console.log(
  Object.values(counts).reduce((a, b) => a + b),
  'cases compared',
);
console.log(ratioOfMedians([[1, 1, 1]], [[2, 2, 2]], 0.95).median, 'times as long');
console.log(hasRegressed({ ...compareRuns(before, after), cases: [] }) ? 'nothing compared' : '');
// Prints: 2 measured; worse,failed,changed,unclear,missing,better,mended,added,same
// Prints: 0 facts differ
// Prints: 2 cases compared
// Prints: 2 times as long
// Prints: nothing compared
