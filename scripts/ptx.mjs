#!/usr/bin/env node
// Makes native/cuda/*.ptx from native/cuda/*.cu: the text that the addon carries and that a GPU's driver compiles for its
// own GPU when it is loaded. Checked in, so that nobody who builds or installs needs the CUDA toolkit.
//
//   node scripts/ptx.mjs           writes the files; needs nvcc and ptxas (CUDA 12 or 13) in PATH
//   node scripts/ptx.mjs --check   writes nothing; exit status 1 when a file is not what its source gives
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'native', 'cuda');

/** native/cuda/NAME.cu becomes native/cuda/NAME.ptx. */
export const modules = ['kernels', 'step_kernels'];

/** The oldest GPU that is served; newer ones take its PTX too. */
const architecture = 'compute_75';
/** Each must be able to compile the result. */
const targets = ['sm_75', 'sm_80', 'sm_90', 'sm_100'];
/**
 * PTX versions from the oldest that knows the architecture. A driver refuses newer text than it knows, so the oldest that
 * has every instruction used is the one to write: 6.3 is what drivers of CUDA 10.0 take.
 */
const versions = ['6.3', '6.4', '6.5', '7.0', '7.1', '7.2', '7.3', '7.4', '7.8', '8.0', '8.4'];

/** The release of nvcc that is here, as "13.0"; undefined where it or ptxas is missing. */
export function compiler() {
  const run = spawnSync('nvcc', ['--version'], { encoding: 'utf8' });
  if (run.status !== 0 || spawnSync('ptxas', ['--version']).status !== 0) return undefined;
  return /release ([0-9.]+)/.exec(run.stdout)?.[1];
}

const madeBy = '// Made by scripts/ptx.mjs with nvcc';

/** The nvcc release that made the file that is checked in: another one writes the same code in other words. */
export const madeWith = (module) =>
  new RegExp(`^${madeBy} ([0-9.]+) `).exec(readFileSync(fileOf(module), 'utf8'))?.[1];

/** The file that is checked in. */
export const fileOf = (module) => join(folder, `${module}.ptx`);

function assembles(file, target) {
  return spawnSync('ptxas', [`-arch=${target}`, '-o', '/dev/null', file], { encoding: 'utf8' });
}

/** The PTX of a module, for the oldest version that the assembler takes. */
export function ptxOf(module) {
  const scratch = mkdtempSync(join(tmpdir(), 'gradlink-ptx-'));
  try {
    const file = join(scratch, `${module}.ptx`);
    // No fused multiply-add: every product and sum is rounded by itself, as on the host. 186: a loop over the states of an
    // optimizer that has none.
    execFileSync(
      'nvcc',
      ['-ptx', `-arch=${architecture}`, '-std=c++17', '-O3', '-fmad=false', '-ftz=false']
        .concat(['-prec-div=true', '-prec-sqrt=true', '-diag-suppress', '186'])
        .concat(['-I', join(root, 'native'), '-o', file, join(folder, `${module}.cu`)]),
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    // The header names the compiler's build; without it, equal code is equal text.
    const made = readFileSync(file, 'utf8')
      .replace(/^\/\/.*\n/gm, '')
      .trimStart();
    const header = `${madeBy} ${compiler()} from ${module}.cu.\n`;
    let complaint = '';
    for (const version of versions) {
      const text = header + made.replace(/^\.version .*$/m, `.version ${version}`);
      writeFileSync(file, text);
      const refused = targets
        .map((target) => assembles(file, target))
        .find((run) => run.status !== 0);
      if (refused === undefined) return text;
      complaint = refused.stderr;
    }
    throw new Error(
      `ptxas takes ${module}.ptx as none of PTX ${versions.join(', ')}:\n${complaint}`,
    );
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** Whether what is checked in is what the source gives with the compiler that is here. */
export const isCurrent = (module) =>
  existsSync(fileOf(module)) && readFileSync(fileOf(module), 'utf8') === ptxOf(module);

function main() {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  if (compiler() === undefined) {
    console.error(
      'ptx.mjs: nvcc and ptxas are needed: install the CUDA toolkit (12 or 13) and put them in PATH',
    );
    return 1;
  }
  let stale = 0;
  for (const module of modules) {
    if (!values.check) {
      writeFileSync(fileOf(module), ptxOf(module));
    } else if (!isCurrent(module)) {
      console.error(
        `native/cuda/${module}.ptx is not what ${module}.cu gives: run "node scripts/ptx.mjs"`,
      );
      stale = 1;
    }
  }
  return stale;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main();
