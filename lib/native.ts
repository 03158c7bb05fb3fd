// The only file that loads the addon. The types of what it exports are in lib/native/, one file for each area; the
// cast below ties them, and test/native/surface.test.ts holds the two equal.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import type bindingsFunction from 'bindings';

import { GradlinkError } from './errors.js';
import type { CommunicatorNatives } from './native/communicator.js';
import type { DistNatives } from './native/dist.js';
import type { GpuMeasureNatives } from './native/gpu-measure.js';
import type { GpuNatives } from './native/gpu.js';
import type { KVStoreNatives } from './native/kvstore.js';
import type { MeasureNatives } from './native/measure.js';
import type { OptimizerNatives } from './native/optimizer.js';
import type { TrainNatives } from './native/train.js';
import type { WindowNatives } from './native/window.js';

/** Everything the addon exports. */
export interface NativeAddon
  extends
    CommunicatorNatives,
    DistNatives,
    GpuMeasureNatives,
    GpuNatives,
    KVStoreNatives,
    MeasureNatives,
    OptimizerNatives,
    TrainNatives,
    WindowNatives {
  /** Hands over the class that native failures are made of. */
  setErrorClass(errorClass: typeof GradlinkError): void;
}

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;

let loaded: { readonly addon: NativeAddon; readonly path: string } | undefined;

/**
 * The addon, loaded at the first call.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE when there is none that loads: the message lists what was tried, why
 *   each failed, and what to do.
 */
export function native(): NativeAddon {
  return (loaded ??= load()).addon;
}

/** The file the addon was loaded from. */
export function nativePath(): string {
  return (loaded ??= load()).path;
}

interface Candidate {
  readonly label: string;
  /** Loads it, or throws. */
  open(): { addon: unknown; path: string };
}

function load(): { addon: NativeAddon; path: string } {
  const failures: string[] = [];
  for (const candidate of candidates()) {
    try {
      const { addon, path } = candidate.open();
      const typed = addon as NativeAddon;
      typed.setErrorClass(GradlinkError);
      return { addon: typed, path };
    } catch (error) {
      failures.push(`  ${candidate.label}: ${firstLine(error)}`);
    }
  }
  throw new GradlinkError('ERR_BACKEND_UNAVAILABLE', failureMessage(failures));
}

function candidates(): Candidate[] {
  const named = process.env['GRADLINK_BINARY'];
  if (named !== undefined && named !== '') {
    const path = resolve(named);
    // Whoever names a file wants that one: falling back to another would hide a mistake.
    return [{ label: `GRADLINK_BINARY=${named}`, open: () => openFile(path) }];
  }
  const root = packageRoot();
  const platformPackage = `@gradlink/${platform}`;
  const prebuilt = join('prebuilds', platform, 'gradlink.node');
  return [
    {
      label: `package ${platformPackage}`,
      open: () => openFile(require.resolve(`${platformPackage}/gradlink.node`)),
    },
    { label: prebuilt, open: () => openFile(join(root, prebuilt)) },
    { label: 'build/Release/gradlink.node', open: () => openBuilt(root) },
  ];
}

function openFile(path: string): { addon: unknown; path: string } {
  if (!existsSync(path)) throw new Error('no such file');
  return { addon: require(path), path };
}

function openBuilt(root: string): { addon: unknown; path: string } {
  const path = join(root, 'build', 'Release', 'gradlink.node');
  if (!existsSync(path)) throw new Error('not built');
  // Only this one place: a build of another kind (Debug, coverage) must be asked for through GRADLINK_BINARY.
  const bindings = require('bindings') as typeof bindingsFunction;
  const addon = bindings({
    bindings: 'gradlink.node',
    module_root: root,
    try: [['module_root', 'build', 'Release', 'bindings']],
  }) as { path?: string };
  // bindings notes the path on the exports, where it is no part of the native surface.
  delete addon.path;
  return { addon, path };
}

/** The folder of this package's package.json: one level up from the sources, two from dist. */
function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) {
      const { name } = JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown };
      if (name === 'gradlink') return folder;
    }
    const parent = dirname(folder);
    if (parent === folder) return process.cwd();
    folder = parent;
  }
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n', 1)[0] ?? message;
}

function failureMessage(failures: readonly string[]): string {
  return [
    `gradlink's native addon for ${platform} (Node ${process.versions.node}) did not load. Tried:`,
    ...failures,
    'What to do, one of:',
    `  - install the prebuilt package: npm install @gradlink/${platform}`,
    '  - build it here: npm run build:native (in an application: npm rebuild gradlink). It needs a C++20 compiler',
    '    and cmake: on Debian and Ubuntu `apt-get install g++ make cmake`, on Fedora `dnf install gcc-c++ make cmake`',
    '  - name a file that loads in the environment variable GRADLINK_BINARY',
  ].join('\n');
}
