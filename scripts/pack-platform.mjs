#!/usr/bin/env node
// Packs the platform package @gradlink/PLATFORM-ARCH, which holds nothing but this machine's binary and has the version
// of the main package. The loader takes it before anything else. Prints the tarball's path.
//
//   node scripts/pack-platform.mjs [FOLDER]
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { build, builtFiles, root, strictByDefault } from './native.mjs';

const { version, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const platform = `${process.platform}-${process.arch}`;
const manifest = {
  name: `@gradlink/${platform}`,
  version,
  description: `The native addon of gradlink for ${platform} (glibc); install gradlink, not this`,
  license,
  engines,
  os: [process.platform],
  cpu: [process.arch],
  libc: ['glibc'],
  main: 'gradlink.node',
  files: ['gradlink.node', '*.so'],
};

const destination = resolve(process.argv[2] ?? '.');
const folder = mkdtempSync(join(tmpdir(), 'gradlink-platform-'));
try {
  // As the build before it: other flags would compile everything again.
  build({ strict: strictByDefault });
  for (const file of builtFiles()) copyFileSync(file, join(folder, basename(file)));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  mkdirSync(destination, { recursive: true });
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', destination], {
    cwd: folder,
    encoding: 'utf8',
  });
  console.log(join(destination, JSON.parse(packed)[0].filename));
} finally {
  rmSync(folder, { recursive: true });
}
