// Run: node examples/report.js
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { environmentOf, knownVariables, outcome, parseReport, readReport } from 'gradlink/measure';
import { reportSchema, runStores, schemaVersion } from 'gradlink/measure';
import { network } from 'gradlink/models';

const stores = { kvStores: ['local'], network: network('lenet'), devices: 2, batches: 1 };
const text = JSON.stringify(await runStores(stores));
const folder = mkdtempSync(`${tmpdir()}/gradlink-report-`);
const file = `${folder}/report.json`;
writeFileSync(file, text);
console.log(outcome(readReport(file)).ok, 'case ran');
rmSync(folder, { recursive: true });
console.log('version', parseReport(text, 'text').schemaVersion, 'of', schemaVersion);
console.log(reportSchema.$schema, environmentOf().operatingSystem);
console.log(knownVariables({ NCCL_ALGO: 'Ring', HOME: '/root' }));
// Prints: 1 case ran
// Prints: version 1 of 1
// Prints: http://json-schema.org/draft-07/schema# Linux
// Prints: { NCCL_ALGO: 'Ring' }
