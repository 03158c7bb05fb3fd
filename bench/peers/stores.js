// Parameter servers: gradlink's distributed store with one worker and one server, and ps-lite's own benchmark.
import { randomInt } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));

/** @type {import('./contenders.js').Contender} */
export const distSync = {
  id: 'dist_sync',
  label: 'gradlink, dist_sync',
  waived: () => undefined,
  places: ['store'],
  programs: ({ sizes, seconds }) => [
    {
      command: process.execPath,
      args: [
        ...[here('../gradlink.js'), 'launch', '-n', '1', '-s', '1'],
        ...[process.execPath, here('store-worker.js'), sizes.join(','), String(seconds)],
      ],
    },
  ],
};

/** The benchmark of bytedance/ps-lite (tests/test_benchmark.cc): bytes, rounds, mode. */
export const psLiteVariable = 'GRADLINK_PEERS_PS_LITE';
const pushThenPull = '0';
const rounds = 50;

/** The time of one round from what it prints: `Application goodput: 3.2 Gbps. count = 10`, gigabits of one array a round. */
export function psLiteRecord(bytes, line) {
  const goodput = /Application goodput: ([\d.e+]+) Gbps/.exec(line)?.[1];
  if (goodput === undefined || !(Number(goodput) > 0)) return undefined;
  return { bytes, place: 'store', seconds: [(8 * bytes) / (Number(goodput) * 1e9)], wrong: 0 };
}

/** @type {import('./contenders.js').Contender} */
export const psLite = {
  id: 'ps-lite',
  label: 'ps-lite (loopback)',
  waived: () => {
    const binary = process.env[psLiteVariable] ?? '';
    if (binary === '') {
      return `${psLiteVariable} does not name its benchmark (bytedance/ps-lite, tests/test_benchmark)`;
    }
    try {
      accessSync(binary, constants.X_OK);
      return undefined;
    } catch (error) {
      return `${psLiteVariable}: ${error.message}`;
    }
  },
  places: ['store'],
  // It takes one size a run.
  oneSize: true,
  programs: ({ sizes: [bytes] }) => {
    const common = {
      DMLC_PS_ROOT_URI: '127.0.0.1',
      DMLC_PS_ROOT_PORT: String(randomInt(20_000, 60_000)),
      DMLC_NUM_WORKER: '1',
      DMLC_NUM_SERVER: '1',
      DMLC_INTERFACE: 'lo',
      DMLC_NODE_HOST: '127.0.0.1',
      NUM_KEY_PER_SERVER: '1',
      LOG_DURATION: '10',
    };
    const args = [String(bytes), String(rounds), pushThenPull];
    return ['scheduler', 'server', 'worker'].map((role) => ({
      command: process.env[psLiteVariable],
      args,
      env: { ...common, DMLC_ROLE: role },
      record: (line) => (role === 'worker' ? psLiteRecord(bytes, line) : undefined),
    }));
  },
};
