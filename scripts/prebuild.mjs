#!/usr/bin/env node
// npm's prepack and postpack scripts: the tarball carries the binary of the machine that packs it, in
// prebuilds/PLATFORM-ARCH/gradlink.node, with the MPI shims beside it. It is taken away after packing, because a copy left in the checkout would be
// loaded long after the sources have moved on.
//
//   node scripts/prebuild.mjs add|remove
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build, builtFiles, root, strictByDefault } from './native.mjs';

const folder = join(root, 'prebuilds');
const [action] = process.argv.slice(2);

if (action === 'add') {
  const target = join(folder, `${process.platform}-${process.arch}`);
  // Whoever packs offline, or under a test, has built already.
  if (!existsSync(join(root, 'build', 'Release', 'gradlink.node'))) {
    build({ strict: strictByDefault });
  }
  mkdirSync(target, { recursive: true });
  for (const file of builtFiles()) copyFileSync(file, join(target, basename(file)));
} else if (action === 'remove') {
  rmSync(folder, { recursive: true, force: true });
} else {
  console.error(`Expected add or remove but received ${action}.`);
  process.exitCode = 2;
}
