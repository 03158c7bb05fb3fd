// Run: node examples/baselines.js
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Baselines, runCollectives } from 'gradlink/measure';

const folder = mkdtempSync(`${tmpdir()}/gradlink-baselines-`);
const options = { collective: 'all_reduce', ranks: 2, sizes: [65536], iterations: 5 };
writeFileSync(`${folder}/run.json`, JSON.stringify(await runCollectives(options)));
const baselines = new Baselines({ XDG_DATA_HOME: folder, XDG_STATE_HOME: folder }); // process.env: yours
baselines.save('monday', [`${folder}/run.json`]);
baselines.use('monday'); // `gradlink compare RUN` now compares with it
console.log(
  baselines.inUse(),
  baselines.list().map(({ tool, runs }) => `${tool}: ${runs} run`),
);
console.log(baselines.read('monday')[0].cases.length, 'cases');
rmSync(folder, { recursive: true });
// Prints: monday [ 'collectives: 1 run' ]
// Prints: 2 cases
