// The lines of docs/tfjs-node-gpu.md that compile the package's binding, as they stand but for what they download.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { tfjsNodeFolder } from '../setup/tfjs-node.js';
import { folderOfAllTests } from '../support/folders.js';

const root = join(import.meta.dirname, '../..');
const downloads = /^(python3 -m venv|tensorflow\/bin\/pip|npm install) /;

let folder = '';
folderOfAllTests((made) => (folder = made));

/** What the lines that download leave: a Python that knows its TensorFlow, and the package without a binding. */
function installed(): void {
  const library = readFileSync(join(tfjsNodeFolder, 'library'), 'utf8').trim();
  mkdirSync(join(folder, 'tensorflow/bin'), { recursive: true });
  const python = join(folder, 'tensorflow/bin/python');
  writeFileSync(python, `#!/bin/sh\necho '${library}'\n`);
  chmodSync(python, 0o755);
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@tensorflow'), { recursive: true });
  const link = (from: string, name: string): void => {
    symlinkSync(join(from, name), join(modules, name));
  };
  const scoped = (from: string): string[] =>
    readdirSync(join(from, '@tensorflow')).map((name) => `@tensorflow/${name}`);
  const [own, checkout] = [join(tfjsNodeFolder, 'node_modules'), join(root, 'node_modules')];
  for (const name of [...readdirSync(own), ...scoped(own)]) {
    if (!/^\.|^@tensorflow(\/tfjs-node.*)?$/.test(name)) link(own, name);
  }
  for (const name of [...scoped(checkout), 'node-api-headers']) link(checkout, name);
  const name = '@tensorflow/tfjs-node-gpu';
  cpSync(join(own, name), join(modules, name), { recursive: true });
  rmSync(join(modules, name, 'lib'), { recursive: true });
}

it('a binding that is compiled by the guide computes', () => {
  installed();
  const guide = readFileSync(join(root, 'docs/tfjs-node-gpu.md'), 'utf8');
  const blocks = [...guide.matchAll(/^```sh\n(.*?)^```/gms)].map(([, lines]) => lines!);
  const block = blocks.find((one) => one.includes('g++')) ?? '';
  const lines = block.split('\n').filter((line) => !downloads.test(line));
  expect(block.split('\n').length - lines.length).toBe(3);
  const { status, stderr } = spawnSync('bash', ['-c', `set -e\n${lines.join('\n')}`], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  const code = `const tf = require('@tensorflow/tfjs-node-gpu');
    console.log(tf.backend().binding.TF_Version, tf.add(1, 2).dataSync()[0]);`;
  const stdout = execFileSync(process.execPath, ['--eval', code], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/^2\.\d+\.\d+ 3$/m);
});
