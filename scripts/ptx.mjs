#!/usr/bin/env node
// Makes the PTX of native/cuda/*.cu: the text that the addon carries and that a GPU's driver compiles for its own GPU when it
// is loaded. Checked in as native/cuda/ptx.json.br, so that nobody who builds or installs needs the CUDA toolkit.
//
//   node scripts/ptx.mjs           writes the file; needs nvcc and ptxas (CUDA 12 or 13) in PATH
//   node scripts/ptx.mjs --check   writes nothing; exit status 1 when a text is not what its source gives, 3 when that
//                                  cannot be said here: no nvcc, or another release than the one that made the texts
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { packedPtx, readPtx, sources, writePtx } from '../native/cuda/ptx.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'native', 'cuda');

/** The texts that are checked in; none before they were first made. */
const checkedIn = existsSync(packedPtx) ? readPtx() : {};

/** The oldest that nvcc knows. */
const architecture = 'compute_75';
/**
 * The oldest GPU that is served, Maxwell; newer ones take its PTX too. Nothing that the kernels use needs a later one: the
 * text is the same, and the assembler would refuse what the target does not have.
 */
const oldest = 'sm_50';
/** Each must be able to compile the result. */
const targets = ['sm_75', 'sm_80', 'sm_90', 'sm_100', 'sm_120'];
/**
 * PTX versions from the oldest that knows the architecture. A driver refuses newer text than it knows, so the oldest that
 * has every instruction used is the one to write: 6.3 is what drivers of CUDA 10.0 take.
 */
const versions = ['6.3', '6.4', '6.5', '7.0', '7.1', '7.2', '7.3', '7.4', '7.8', '8.0', '8.4'];

/** The release of nvcc that is here, as "13.0"; undefined where it or ptxas is missing. */
function compiler() {
  const run = spawnSync('nvcc', ['--version'], { encoding: 'utf8' });
  if (run.status !== 0 || spawnSync('ptxas', ['--version']).status !== 0) return undefined;
  return /release ([0-9.]+)/.exec(run.stdout)?.[1];
}

const madeBy = '// Made by scripts/ptx.mjs with nvcc';

/** The nvcc release that made a text that is checked in: another one writes the same code in other words. */
const madeWith = (source) => new RegExp(`^${madeBy} ([0-9.]+) `).exec(checkedIn[source] ?? '')?.[1];

function assembles(file, target) {
  return spawnSync('ptxas', [`-arch=${target}`, '-o', '/dev/null', file], { encoding: 'utf8' });
}

/** What nvcc makes of a source, without a header and of the version that this nvcc writes. */
function compiled(source, scratch) {
  const file = join(scratch, `${source}.ptx`);
  // No fused multiply-add: every product and sum is rounded by itself, as on the host. 186: a loop over the states of an
  // optimizer that has none.
  execFileSync(
    'nvcc',
    ['-ptx', `-arch=${architecture}`, '-std=c++17', '-O3', '-fmad=false', '-ftz=false']
      .concat(['-prec-div=true', '-prec-sqrt=true', '-diag-suppress', '186'])
      .concat(['-I', join(root, 'native'), '-o', file, join(folder, `${source}.cu`)]),
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  // The header names the compiler's build; without it, equal code is equal text. The pragma is a hint, for versions from
  // 8.3 on, that some bytes of a load are not used.
  return readFileSync(file, 'utf8')
    .replace(/^\/\/.*\n/gm, '')
    .replace(/^[ \t]*\.pragma "used_bytes_mask .*\n/gm, '')
    .trimStart();
}

const versionLine = /^\.version .*$/m;
const targetLine = /^\.target .*$/m;

/** As it is checked in, for that version. */
const textOf = (source, release, made, version) =>
  `${madeBy} ${release} from ${source}.cu.\n` +
  made.replace(versionLine, `.version ${version}`).replace(targetLine, `.target ${oldest}`);

/** Whether the text that is checked in is what its source gives; that it assembles was seen when it was written. */
function isCurrent(source, release, scratch) {
  const text = checkedIn[source] ?? '';
  const version = versionLine.exec(text)?.[0].replace('.version ', '');
  return text === textOf(source, release, compiled(source, scratch), version);
}

/** The PTX of a source, for the oldest version that the assembler takes. */
function ptxOf(source, release, scratch) {
  const made = compiled(source, scratch);
  const file = join(scratch, `${source}.${release}.ptx`);
  let complaint = '';
  for (const version of versions) {
    const text = textOf(source, release, made, version);
    writeFileSync(file, text);
    const refused = targets
      .map((target) => assembles(file, target))
      .find((run) => run.status !== 0);
    if (refused === undefined) return text;
    complaint = refused.stderr;
  }
  throw new Error(`ptxas takes ${source}.ptx as none of PTX ${versions.join(', ')}:\n${complaint}`);
}

/** Why nothing can be compared here; undefined where it can. */
function obstacle(release) {
  if (release === undefined) {
    return 'nvcc and ptxas are not in PATH: install the CUDA toolkit (12 or 13)';
  }
  const other = sources.find((source) => source in checkedIn && madeWith(source) !== release);
  return other && `the PTX of ${other} was made with nvcc ${madeWith(other)}, here is ${release}`;
}

function main() {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const release = compiler();
  const reason = values.check || release === undefined ? obstacle(release) : undefined;
  if (reason !== undefined) {
    console.error(reason);
    return 3;
  }
  const scratch = mkdtempSync(join(tmpdir(), 'gradlink-ptx-'));
  try {
    if (!values.check) {
      writePtx(
        Object.fromEntries(sources.map((source) => [source, ptxOf(source, release, scratch)])),
      );
      return 0;
    }
    const old = sources.filter((source) => !isCurrent(source, release, scratch));
    for (const source of old) {
      console.error(
        `native/cuda/ptx.json.br: its ${source} is not what ${source}.cu gives: run "node scripts/ptx.mjs"`,
      );
    }
    return old.length === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

process.exitCode = main();
