// What is measured of gradlink beside the peers: one process with all ranks beside the bare loop, the cost of JavaScript, and
// the share of the memory's bandwidth that `measure` reaches.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runJob } from './children.js';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const node = (file, ...args) => ({ command: process.execPath, args: [here(file), ...args] });

/** Records of local(k) and of the loop, and the machine's memory bandwidth. */
export async function collectInProcess(quick, say) {
  say('one process, and the bare loops');
  const lines = await runJob([node('in-process.js', quick ? 'quick' : 'full')], {
    timeoutMs: 240_000,
  });
  return {
    records: lines.filter(({ kind }) => kind === 'allReduce'),
    memory: lines.filter(({ kind }) => kind === 'memory'),
  };
}

/** @returns {Promise<{importSeconds: number[], syncSeconds: number[], awaitedSeconds: number[]}>} */
export async function collectOverhead(quick, say) {
  say('cost of JavaScript');
  const samples = { importSeconds: [], syncSeconds: [], awaitedSeconds: [] };
  for (let i = 0; i < (quick ? 1 : 7); i += 1) {
    const [line] = await runJob([node('overhead.js', quick ? '1000' : '100000')], {
      timeoutMs: 60_000,
    });
    for (const name of Object.keys(samples)) samples[name].push(line[name]);
  }
  return samples;
}

const networks = {
  resnet: ['--network', 'resnet', '--num-layers', '50'],
  'inception-v3': ['--network', 'inception-v3', '--image-shape', '3,299,299'],
};

/** Reached share of the bound, by network. */
export async function collectStore(quick, say) {
  const folder = mkdtempSync(join(tmpdir(), 'gradlink-peers-store-'));
  const shares = {};
  try {
    for (const [network, options] of Object.entries(quick ? {} : networks)) {
      say(`measure ${network}`);
      const output = join(folder, `${network}.json`);
      const args = ['--kv-store', 'device', '--cpus', '4', ...options];
      const json = ['--num-batches', '20', '--format', 'json', '--output', output];
      await runJob([node('../measure.js', ...args, ...json)], { timeoutMs: 120_000 });
      shares[network] = JSON.parse(readFileSync(output, 'utf8')).cases[0].limit.ratio;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return shares;
}
