// Code that variables of the environment name, in a process with more rights than who starts it: none is taken.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { expect, it } from 'vitest';

import { binaryFiles } from '../../lib/native/load.js';
import { folderOfEachTest } from '../support/folders.js';
import { fakesFolder, onRealGpus } from './setup/fakes.js';

const root = join(import.meta.dirname, '../..');
const built = join(root, 'build/Release');
const shim = binaryFiles.shims.openmpi;
const nobody = 65534;
const libraries = {
  GRADLINK_CUDA_LIBRARY: 'libcuda.so.1',
  GRADLINK_NVML_LIBRARY: 'libnvidia-ml.so.1',
  GRADLINK_NCCL_LIBRARY: 'libnccl.so.2',
};

let folder = '';
folderOfEachTest((made) => (folder = made));

/** A copy of a file in a folder of this test. */
function copy(from: string, to: string, file: string): string {
  mkdirSync(join(folder, to), { recursive: true });
  copyFileSync(join(from, file), join(folder, to, file));
  return join(folder, to, file);
}

/** An empty file for each architecture, in the place of the kernels' machine code. */
async function cubins(): Promise<string> {
  const { unpackPtx } = (await import(join(root, 'native/cuda/ptx.mjs'))) as {
    unpackPtx: (to: string) => string[];
  };
  const [kernels = ''] = unpackPtx(join(folder, 'ptx'));
  const digest = createHash('sha256').update(readFileSync(kernels)).digest('hex').slice(0, 16);
  mkdirSync(join(folder, 'cubins'));
  for (const major of [7, 8, 9, 10, 12]) {
    writeFileSync(join(folder, 'cubins', `kernels-${digest}.sm_${String(major)}0.cubin.z`), '');
  }
  return join(folder, 'cubins');
}

it('is what an ordinary process takes, and no other', async (context) => {
  if (onRealGpus) context.skip('only stand-ins can be named');
  if (process.getuid?.() !== 0) context.skip('needs root, to let another user run as root');
  if (!existsSync(join(built, shim))) context.skip(`${shim} is not built`);
  const named = { ...libraries, GRADLINK_MPI: shim };
  const ends: Record<string, string> = {};
  for (const [name, file] of Object.entries(named)) {
    ends[name] = copy(file === shim ? built : fakesFolder, 'named', file);
  }
  ends['GRADLINK_CUBINS'] = await cubins();
  const own = { addon: copy(built, 'own', binaryFiles.addon), mpi: copy(built, 'own', shim) };
  // The stand-ins are in the process already, as if they were the system's: the loader then finds them by their names.
  const source = `
    const { RTLD_NOW, RTLD_GLOBAL } = require('node:os').constants.dlopen;
    const stays = 0x1000;
    for (const file of ${JSON.stringify(Object.values(libraries))}) {
      try {
        process.dlopen({ exports: {} }, ${JSON.stringify(fakesFolder)} + '/' + file, RTLD_NOW | RTLD_GLOBAL | stays);
      } catch {
        // It is no addon.
      }
    }
    const addon = require(${JSON.stringify(own.addon)});
    const { driverFile, nvmlFile, ncclFile } = addon.gpuLibraries();
    const mpi = addon.mpiLibrary().file;
    console.log(JSON.stringify([driverFile, nvmlFile, ncclFile, mpi, addon.gpuInfo(0).kernels]));`;
  const node = copy(dirname(process.execPath), 'own', basename(process.execPath));
  chmodSync(node, 0o4755);
  chmodSync(folder, 0o755);
  const run = (code: string, user: number): unknown =>
    JSON.parse(
      execFileSync(node, ['-e', code], {
        env: { ...process.env, ...ends },
        uid: user,
        gid: user,
        encoding: 'utf8',
      }),
    );
  if (run('console.log(process.geteuid())', nobody) !== 0) {
    context.skip('the folder for temporary files is mounted with nosuid');
  }
  const files = Object.keys(named).map((name) => ends[name]);
  expect(run(source, 0)).toEqual([...files, expect.stringMatching(/^cubin sm_/)]);
  const system = Object.values(libraries).map((file) => join(fakesFolder, file));
  expect(run(source, nobody)).toEqual([...system, own.mpi, expect.not.stringMatching(/^cubin/)]);
});
