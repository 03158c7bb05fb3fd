#!/usr/bin/env node
// The rules of the layout that neither a compiler nor ESLint holds: which folder may include what, how long a file may be,
// how many files a folder may have, and that docs/architecture.md says of each what it is. Prints each breach; exit status
// 1 when there is one.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { filesUnder, includesOf } from './graph.mjs';
import { layerBreaches } from './lib-layers.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const maxLines = 400;
/** Of a file that is one class: its members in two files are harder to read than one long file. */
const maxLinesOfClass = 600;
const maxFiles = 40;

/** Which layers a folder of native/ may include, besides itself. */
const below = {
  core: [],
  shm: ['core'],
  messages: ['core'],
  cuda: ['core'],
  nccl: ['core', 'cuda'],
  kvstore: ['core', 'shm', 'cuda', 'nccl'],
  measure: ['core', 'shm', 'cuda', 'nccl'],
  train: ['core', 'kvstore'],
  binding: ['core', 'shm', 'messages', 'cuda', 'nccl', 'kvstore', 'measure', 'train'],
  test: ['core', 'shm', 'messages', 'cuda', 'nccl', 'kvstore', 'measure', 'train'],
};

/** Whether a file defines the members of a single class. */
function isOneClass(file, text) {
  const defined = file.endsWith('.cc')
    ? text.matchAll(/^(?! |\/|using |return ).*?\b(\w+)::~?\w+\(/gm)
    : text.matchAll(/^(?:export )?(?:abstract )?class (\w+)/gm);
  return new Set([...defined].map(([, name]) => name)).size === 1;
}

const breaches = [];
const source = /\.(cc|h|c|ts|js|mjs|py|sh)$/;
for (const file of ['native', 'lib', 'bench', 'lab', 'scripts', 'test'].flatMap((folder) =>
  filesUnder(root, folder, source),
)) {
  const text = readFileSync(join(root, file), 'utf8');
  const lines = text.split('\n').length - 1;
  if (lines > (isOneClass(file, text) ? maxLinesOfClass : maxLines))
    breaches.push(
      `${file}: ${lines} lines; split it, a file has at most ${maxLines}, one class ${maxLinesOfClass}`,
    );
}

for (const file of filesUnder(root, 'native', /\.(cc|h)$/)) {
  const layer = file.split('/')[1];
  for (const include of includesOf(readFileSync(join(root, file), 'utf8'))) {
    if (
      /^(napi|node_api|js_native_api|uv)\.h$/.test(include) &&
      file !== 'native/binding/napi_setup.h'
    ) {
      breaches.push(`${file}: includes ${include}; only native/binding/napi_setup.h may`);
    }
    const target = include.split('/')[0];
    if (target in below && target !== layer && !below[layer]?.includes(target)) {
      breaches.push(
        `${file}: includes ${include}; ${layer} may include ${below[layer]?.join(', ') || 'nothing'} only`,
      );
    }
  }
}

/** The second requires TensorFlow.js, an optional peer, and no addon. */
const loaders = ['lib/native/load.ts', 'lib/train/tfjs.ts'];
const loads = /\bprocess\.dlopen\b|\bcreateRequire\b|\.node['"`]|from 'bindings'/;
for (const file of filesUnder(root, 'lib', /\.ts$/)) {
  if (!loaders.includes(file) && loads.test(readFileSync(join(root, file), 'utf8'))) {
    breaches.push(`${file}: only lib/native/load.ts loads the addon`);
  }
}

breaches.push(...layerBreaches(join(root, 'lib')));

const described = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
const filesOf = new Map();
for (const file of [...filesUnder(root, 'lib', source), ...filesUnder(root, 'native', /./)]) {
  filesOf.set(dirname(file), (filesOf.get(dirname(file)) ?? 0) + 1);
}
for (const [folder, files] of filesOf) {
  if (files > maxFiles)
    breaches.push(`${folder}: ${files} files; a folder has at most ${maxFiles}`);
  const ofTests = folder.startsWith('native/test/');
  if (!ofTests && folder !== 'native' && !described.includes(`| \`${folder}\``))
    breaches.push(
      `${folder}: says nowhere what it is; docs/architecture.md has a line for each folder`,
    );
}

for (const breach of breaches) console.error(breach);
process.exitCode = breaches.length > 0 ? 1 : 0;
