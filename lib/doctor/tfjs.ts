// The TensorFlow.js backends available for training: packages that are installed, without loading them.
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

export interface InstalledPackage {
  readonly folder: string;
  readonly version: string;
}

const installed =
  'npm install @tensorflow/tfjs-core @tensorflow/tfjs-layers @tensorflow/tfjs-backend-wasm';

/** A package as Node would resolve it from the first of these folders that has it; undefined if none has. */
export function findPackage(
  folders: readonly string[],
  name: string,
): InstalledPackage | undefined {
  for (const folder of folders) {
    for (let at = folder; ; at = dirname(at)) {
      const found = join(at, 'node_modules', name);
      const text = readText(join(found, 'package.json'));
      if (text !== undefined) {
        const { version } = JSON.parse(text) as { version?: string };
        return { folder: found, version: version ?? 'of no version' };
      }
      if (dirname(at) === at) break;
    }
  }
  return undefined;
}

/** Folders to search: the user's program, the current folder, then gradlink's. */
export function packageFolders(folder = process.cwd()): readonly string[] {
  return [folder, dirname(fileURLToPath(import.meta.url))];
}

/** @param folder the folder of the user's program */
export function tfjsFinding(folder = process.cwd()): Finding {
  const folders = packageFolders(folder);
  const version = (name: string): string | undefined =>
    findPackage(folders, `@tensorflow/${name}`)?.version;
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
