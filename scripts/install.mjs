#!/usr/bin/env node
// npm's install script. In a checkout it builds the addon and a failure is fatal. As a dependency it only makes sure of
// a binary where it can: it never downloads and never breaks somebody's `npm install`; the loader explains at first use.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, isCheckout, missingTools, root, strictByDefault } from './native.mjs';

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;

function loads(candidate) {
  try {
    require(candidate);
    return true;
  } catch {
    return false;
  }
}

function main() {
  if (isCheckout) {
    build({ strict: strictByDefault });
    return;
  }
  const candidates = [
    `@gradlink/${platform}`,
    join(root, 'prebuilds', platform, 'gradlink.node'),
    join(root, 'build', 'Release', 'gradlink.node'),
  ];
  const rebuild = process.env.npm_config_build_from_source !== undefined;
  if (!rebuild && candidates.some(loads)) return;
  const problem = missingTools();
  if (problem) {
    console.warn(`gradlink: no prebuilt binary for ${platform} loads here.\n${problem}`);
    console.warn('Then run "npm rebuild gradlink".');
    return;
  }
  build();
}

try {
  main();
} catch (error) {
  console.error(`gradlink: ${error instanceof Error ? error.message : error}`);
  if (isCheckout) process.exitCode = 1;
  else console.error('Importing gradlink will fail until "npm rebuild gradlink" succeeds.');
}
