// The share of the bytes-that-must-move bound which `measure` reaches on 4 CPU devices. Prints one JSON line.
//
//   measure-share.js NETWORK OPTIONS OF measure...
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [network, ...options] = process.argv.slice(2);
const program = fileURLToPath(new URL('../../bench/measure.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'gradlink-peers-store-'));
try {
  const output = join(folder, 'run.json');
  const args = ['--kv-store', 'device', '--cpus', '4', '--num-batches', '20', ...options];
  const { status, stderr } = spawnSync(
    process.execPath,
    [program, ...args, '--format', 'json', '--output', output],
    { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`measure ended with ${status}: ${stderr.trim()}`);
  const share = JSON.parse(readFileSync(output, 'utf8')).cases[0].limit.ratio;
  console.log(JSON.stringify({ network, share }));
} finally {
  rmSync(folder, { recursive: true });
}
