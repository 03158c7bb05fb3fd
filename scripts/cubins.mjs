#!/usr/bin/env node
// Makes machine code of the kernels' PTX, so that a GPU's driver compiles nothing: a cubin for each source and
// architecture, which the platform packages carry beside the addon. Needs ptxas of CUDA 12.8 or newer in PATH, no GPU. Best
// is 12.8 or 12.9: drivers from 525 on take what CUDA 12 made, only those from 580 on what CUDA 13 made, and CUDA 13 knows
// Volta (sm_70) no more.
//
//   node scripts/cubins.mjs            makes what is missing in build/cubins, and lists it; exit status 3 where something
//                                      is missing and cannot be made
//
// They are compressed, to a fifth. A cubin is named after the digest of its PTX: an addon that was built with other kernels
// does not find it.
// GRADLINK_CUBINS=build/cubins has a checkout's own addon use them.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';

import { unpackPtx } from '../native/cuda/ptx.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'build', 'cubins');

/** A GPU runs what was made for its major version and a minor one not above its own: 80 serves 86, 87 and 89. */
const architectures = [70, 80, 90, 100, 120];

/** Whether that release of ptxas makes code for an architecture. */
export const makes = (release, architecture) => architecture > 70 || release < 1300;

/** What every kernel keeps to: three blocks of 256 threads fit on a multiprocessor, and nothing is put into memory. */
export const limits = { registers: 80, spilledBytes: 0 };

/** The release of the ptxas that is here, 1208 of 12.8; undefined where there is none. */
function assembler() {
  const run = spawnSync('ptxas', ['--version'], { encoding: 'utf8' });
  const release = /release ([0-9]+)\.([0-9]+)/.exec(run.stdout ?? '');
  return release === null ? undefined : 100 * Number(release[1]) + Number(release[2]);
}

/** Why none can be made here; undefined where they can. */
function obstacle(release) {
  if (release === undefined) {
    return 'ptxas is not in PATH: install the CUDA toolkit (12.8 or newer)';
  }
  if (release >= 1208) return undefined;
  const name = `${String(Math.floor(release / 100))}.${String(release % 100)}`;
  return `ptxas is of CUDA ${name}, which does not know sm_120: 12.8 or newer is needed`;
}

/** What ptxas -v tells of each kernel. */
export function resourcesOf(told) {
  const one =
    /Compiling entry function '(\w+)'[^]*?\b(\d+) bytes spill stores[^]*?Used (\d+) registers/g;
  return [...told.matchAll(one)].map(([, kernel, spilledBytes, registers]) => ({
    kernel,
    registers: Number(registers),
    spilledBytes: Number(spilledBytes),
  }));
}

function make(ptx, architecture, file) {
  const scratch = `${file}.${String(process.pid)}`;
  const { status, stderr } = spawnSync(
    'ptxas',
    ['-v', `-arch=sm_${String(architecture)}`, '-o', scratch, ptx],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`ptxas failed on ${ptx}:\n${stderr}`);
  writeFileSync(`${file}.json`, JSON.stringify(resourcesOf(stderr)));
  writeFileSync(scratch, deflateSync(readFileSync(scratch), { level: 9 }));
  // Whole, or not there.
  renameSync(scratch, file);
}

/** Every cubin of the PTX that is checked in, whether it is there or not. */
function wanted() {
  return unpackPtx(join(root, 'build', 'ptx')).flatMap((ptx) => {
    const digest = createHash('sha256').update(readFileSync(ptx)).digest('hex').slice(0, 16);
    return architectures.map((architecture) => {
      const file = join(
        folder,
        `${basename(ptx, '.ptx')}-${digest}.sm_${String(architecture)}.cubin.z`,
      );
      return { ptx, architecture, file };
    });
  });
}

/**
 * Makes what is missing, and removes what older PTX gave.
 * @returns {{reason: string} | {cubins: {file: string, architecture: number, kernels: ReturnType<typeof resourcesOf>}[]}}
 *   reason: what keeps them from being made here
 */
export function makeCubins() {
  mkdirSync(folder, { recursive: true });
  const release = assembler();
  const all = wanted().filter(
    ({ architecture, file }) => makes(release, architecture) || existsSync(file),
  );
  const missing = all.filter(({ file }) => !existsSync(file));
  const reason = missing.length > 0 ? obstacle(release) : undefined;
  if (reason !== undefined) return { reason };
  for (const { ptx, architecture, file } of missing) make(ptx, architecture, file);
  const kept = new Set(all.flatMap(({ file }) => [basename(file), `${basename(file)}.json`]));
  for (const name of readdirSync(folder)) {
    if (/\.cubin(\.z)?(\.json)?$/.test(name) && !kept.has(name)) rmSync(join(folder, name));
  }
  return {
    cubins: all.map(({ file, architecture }) => {
      const kernels = JSON.parse(readFileSync(`${file}.json`, 'utf8'));
      return { file, architecture, kernels };
    }),
  };
}

function main() {
  const { reason, cubins = [] } = makeCubins();
  if (reason !== undefined) {
    console.error(reason);
    return 3;
  }
  for (const { file, kernels } of cubins) {
    const megabytes = (statSync(file).size / 1e6).toFixed(2);
    console.log(`${file}: ${String(kernels.length)} kernels, ${megabytes} MB`);
  }
  return 0;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = main();
}
