// Run: node examples/timeline.js
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Timeline, mergeTimelines, monotonicSeconds } from 'gradlink/tfjs';

const folder = mkdtempSync(`${tmpdir()}/gradlink-timeline-`);
const files = [0, 1].map((rank) => `${folder}/rank-${rank}.json`);
files.forEach((file, rank) => {
  const timeline = new Timeline(file, { rank });
  timeline.span('compute', 'forward', () => Math.sqrt(2));
  timeline.add('communication', 'all-reduce', monotonicSeconds(), monotonicSeconds() + 0.1);
  timeline.close(); // the file opens in chrome://tracing and in Perfetto
});
mergeTimelines(files, `${folder}/both.json`);
const { traceEvents } = JSON.parse(readFileSync(`${folder}/both.json`, 'utf8'));
for (const { pid, name } of traceEvents.filter(({ ph }) => ph === 'X')) console.log(pid, name);
rmSync(folder, { recursive: true });
// Prints: 0 forward
// Prints: 0 all-reduce
// Prints: 1 forward
// Prints: 1 all-reduce
