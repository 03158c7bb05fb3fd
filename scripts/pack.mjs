#!/usr/bin/env node
// `npm run pack`: the tarballs that are published, into build/npm: gradlink itself, and the platform package of this
// machine with the addon and the MPI shims.
//
//   node scripts/pack.mjs [--output FOLDER] [--cubins]
//                                      --cubins: fails where the kernels' machine code cannot be made (scripts/cubins.mjs);
//                                      else a package without it says so, and drivers compile the kernels
//   node scripts/pack.mjs --refuse     what a bare `npm pack` or `npm publish` in the checkout runs
//
// Both are packed from a folder made for it. The manifest that is published differs from the checkout's: it has no
// scripts, since package managers refuse or warn of packages that run some, and it depends on the platform packages.
// The checkout cannot: they are published after it is built, so that `npm ci` would ask for what does not exist yet.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, normalize, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';

import { checkNeeds, floor } from './binary-needs.mjs';
import { makeCubins } from './cubins.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { version, license, engines } = manifest;

/** Each has a package of its own. A new one is a line here, one in lib/native/load.ts, and a runner in the workflow. */
const platforms = {
  'linux-x64-gnu': { os: 'linux', cpu: 'x64', libc: 'glibc' },
  'linux-arm64-gnu': { os: 'linux', cpu: 'arm64', libc: 'glibc' },
};

/** What a platform package holds; each by what brings it where it is missing. */
const binaries = {
  'gradlink.node': 'bash scripts/setup.sh',
  'gradlink_openmpi.so': 'apt-get install libopenmpi-dev, then npm run build:native',
  'gradlink_mpich.so': 'apt-get install libmpich-dev, then npm run build:native',
};

function npm(args, options = {}) {
  return execFileSync('npm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 2], ...options });
}

function builtBinaries() {
  const folder = join(root, 'build', 'Release');
  const missing = Object.entries(binaries).filter(([name]) => !existsSync(join(folder, name)));
  if (missing.length > 0) {
    const lines = missing.map(([name, remedy]) => `  build/Release/${name}: ${remedy}`);
    // Without a shim, MPI would be missing for everybody who installs this.
    throw new Error(['Not built, so that nothing can be packed:', ...lines].join('\n'));
  }
  return Object.keys(binaries).map((name) => join(folder, name));
}

/** Packs a folder; what npm tells of the tarball. */
function pack(folder, output) {
  const told = npm(['pack', '--json', '--ignore-scripts', '--pack-destination', output], {
    cwd: folder,
  });
  const [packed] = JSON.parse(told);
  return packed;
}

function writeManifest(folder, fields) {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(fields, null, 2)}\n`);
}

/** A link to what only a checkout has becomes its text. */
function withoutDeadLinks(text, file, packed) {
  return text.replace(/\[([^[\]\n]+)\]\(([^)\s#]+)(#[^)\s]*)?\)/g, (link, words, target) => {
    if (/^[a-z]+:/.test(target)) return link;
    const path = normalize(join(dirname(file), target)).replace(/\/$/, '');
    const there = packed.has(path) || [...packed].some((one) => one.startsWith(`${path}/`));
    return there ? link : words;
  });
}

/** Cells of tables as wide as what is in them: a quarter of all guides is spaces. */
function withoutPadding(text) {
  let isCode = false;
  const narrow = (line) => {
    if (line.startsWith('```')) isCode = !isCode;
    if (isCode || !line.startsWith('|')) return line;
    return line.replace(/(?<! ) +\|/g, ' |').replace(/-{4,}/g, '---');
  };
  return text.split('\n').map(narrow).join('\n');
}

/**
 * What `gradlink build` compiles: one file, because hardly anybody does, and unpacked it would be two thirds of the files
 * and a quarter of the bytes of every installation.
 */
function archiveSources(file) {
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  const left = ['--exclude=native/test', '--exclude=*.cu'];
  const tar = execFileSync('tar', [...same, ...left, '-c', 'native', 'LICENSE'], {
    cwd: root,
    maxBuffer: 2 ** 28,
  });
  writeFileSync(file, gzipSync(tar, { level: 9 }));
}

async function packMain(work, output) {
  const folder = join(work, 'gradlink');
  const [{ files }] = JSON.parse(
    npm(['pack', '--json', '--dry-run', '--ignore-scripts'], { cwd: root }),
  );
  const paths = new Set(files.map(({ path }) => path));
  for (const path of paths) {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, path), target);
    if (!path.endsWith('.md')) continue;
    const text = withoutDeadLinks(readFileSync(target, 'utf8'), path, paths);
    writeFileSync(target, withoutPadding(text));
  }
  // Brings TypeScript along, which a refusal does not wait for.
  const { exportsText } = await import('./exports.mjs');
  writeFileSync(join(folder, 'docs', 'exports.md'), exportsText());
  archiveSources(join(folder, 'native.tar.gz'));
  const published = { ...manifest };
  // For the checkout alone.
  for (const field of [
    ...['scripts', 'devDependencies', 'allowScripts', 'packageManager'],
    ...['files', 'gypfile', 'binary'],
  ]) {
    delete published[field];
  }
  published.optionalDependencies = Object.fromEntries(
    Object.keys(platforms).map((name) => [`@gradlink/${name}`, version]),
  );
  writeManifest(folder, published);
  return pack(folder, output);
}

/** Puts the kernels' machine code into the folder of a platform package. */
function copyCubins(folder, required) {
  const { reason, cubins = [] } = makeCubins();
  if (reason !== undefined) {
    const without = `Without the kernels' machine code, so that every GPU's driver compiles them: ${reason}.`;
    if (required) throw new Error(without);
    console.error(without);
    return;
  }
  mkdirSync(join(folder, 'cubins'));
  for (const { file } of cubins) copyFileSync(file, join(folder, 'cubins', basename(file)));
}

function packPlatform(work, output, required) {
  const name = `${process.platform}-${process.arch}-gnu`;
  const platform = platforms[name];
  if (platform === undefined) {
    throw new Error(
      `There is no platform package for ${name}: ${Object.keys(platforms).join(', ')}.`,
    );
  }
  const folder = join(work, name);
  mkdirSync(folder);
  const files = builtBinaries();
  for (const file of files) {
    const target = join(folder, basename(file));
    // What debuggers need of a release build is a fifth of it, and nobody has the objects to go with it.
    const { status, error } = spawnSync('strip', ['--strip-unneeded', '-o', target, file], {
      stdio: ['ignore', 2, 2],
    });
    if (status !== 0) throw new Error(`strip failed on ${file}: ${error?.message ?? status}`);
    checkNeeds(target);
  }
  copyCubins(folder, required);
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(
    join(folder, 'README.md'),
    [
      `# @gradlink/${name}`,
      '',
      `The native addon of gradlink for ${platform.os} on ${platform.cpu}, and what it`,
      `loads of Open MPI and MPICH. Install gradlink, which brings this along. Needs glibc ${floor.GLIBC} or newer.`,
      '',
    ].join('\n'),
  );
  writeManifest(folder, {
    name: `@gradlink/${name}`,
    version,
    description: `The native addon of gradlink for ${platform.os} on ${platform.cpu} with glibc; install gradlink, not this`,
    license,
    engines,
    os: [platform.os],
    cpu: [platform.cpu],
    libc: [platform.libc],
    main: 'gradlink.node',
    files: [...Object.keys(binaries), 'cubins'],
    // A shared object cannot be loaded from inside an archive.
    preferUnplugged: true,
  });
  return pack(folder, output);
}

async function main() {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: join(root, 'build', 'npm') },
      cubins: { type: 'boolean', default: false },
      refuse: { type: 'boolean', default: false },
    },
  });
  if (values.refuse) {
    // npm takes "prepack" for what goes before "npm run pack", too.
    if (process.env.npm_command?.startsWith('run')) return;
    throw new Error(
      'A tarball of the checkout as it stands would lack its platform packages. Use "npm run pack", which writes build/npm/*.tgz; publish those.',
    );
  }
  builtBinaries();
  npm(['run', '--silent', 'build:types'], { cwd: root, stdio: ['ignore', 2, 2] });
  const output = resolve(values.output);
  mkdirSync(output, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'gradlink-pack-'));
  try {
    for (const { filename, size, unpackedSize, entryCount } of [
      await packMain(work, output),
      packPlatform(work, output, values.cubins),
    ]) {
      const path = relative(process.cwd(), join(output, filename));
      const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
      console.log(path);
      console.error(
        `  ${megabytes(size)}, unpacked ${megabytes(unpackedSize)} in ${entryCount} files`,
      );
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
