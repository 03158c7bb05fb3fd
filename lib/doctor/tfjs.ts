// Which backends of TensorFlow.js a training could use: packages that are installed, not loaded.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { readText } from './system.js';
import type { Finding } from './types.js';

const backends = {
  'tfjs-backend-wasm': 'wasm',
  'tfjs-backend-cpu': 'cpu',
  'tfjs-node': 'node',
  'tfjs-node-gpu': 'node-gpu',
} as const;

const installed =
  'npm install @tensorflow/tfjs-core @tensorflow/tfjs-layers @tensorflow/tfjs-backend-wasm';

/** Version of a package as Node would find it from this folder; undefined where it would not. */
export function packageVersionFrom(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const text = readText(join(at, 'node_modules', name, 'package.json'));
    if (text !== undefined) return (JSON.parse(text) as { version?: string }).version;
    if (dirname(at) === at) return undefined;
  }
}

/** @param folder where the user's program is: the current folder */
export function tfjsFinding(folder = process.cwd()): Finding {
  const here = dirname(fileURLToPath(import.meta.url));
  const version = (name: string): string | undefined =>
    packageVersionFrom(folder, `@tensorflow/${name}`) ??
    packageVersionFrom(here, `@tensorflow/${name}`);
  const core = version('tfjs-core');
  const found = Object.entries(backends).flatMap(([name, backend]) => {
    const one = version(name);
    return one === undefined ? [] : [`${backend} ${one}`];
  });
  const name = 'tfjs';
  if (core === undefined && found.length === 0) {
    const advice = `only needed for training: ${installed}`;
    return { name, status: 'missing', text: 'TensorFlow.js is not installed', advice };
  }
  const slow = found.length === 0 || found.every((one) => one.startsWith('cpu '));
  return {
    name,
    status: slow ? 'degraded' : 'ok',
    text: `core ${core ?? 'of its backend'}; backends: ${found.length === 0 ? 'none' : found.join(', ')}`,
    advice: slow ? `the plain JavaScript backend is slow: ${installed}` : null,
  };
}
