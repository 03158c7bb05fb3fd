// The only file that loads the addon. lib/native/ has the types of its exports, one file per area; the cast below
// connects them, and test/native/surface.test.ts keeps the two equal.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';

import type bindingsFunction from 'bindings';
import type * as DetectLibc from 'detect-libc';

import { GradlinkError } from '../errors.js';
import type { CommunicatorNatives } from './communicator.js';
import type { DistNatives } from './dist.js';
import type { GpuMeasureNatives } from './gpu-measure.js';
import type { GpuNatives } from './gpu.js';
import type { KVStoreNatives } from './kvstore.js';
import type { MeasureNatives } from './measure.js';
import type { OptimizerNatives } from './optimizer.js';
import type { TrainNatives } from './train.js';
import { isPrivileged } from './privileged.js';
import type { WindowNatives } from './window.js';
import { isCheckout, ownFile, packageFolder } from '../package-folder.js';
import { version } from '../version.js';

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
  /** Sets the class of native errors. */
  setErrorClass(errorClass: typeof GradlinkError): void;
}

/** The files of a build, with the shims by MPI. All are in one folder. */
export const binaryFiles = {
  addon: 'gradlink.node',
  shims: { openmpi: 'gradlink_openmpi.so', mpich: 'gradlink_mpich.so' },
} as const;

let loaded: { readonly addon: NativeAddon; readonly path: string } | undefined;

/**
 * Loads the addon at the first call.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE if none loads: the message lists the attempts, their errors and the
 *   remedies.
 */
export function native(): NativeAddon {
  return (loaded ??= load()).addon;
}

/** The file that the addon was loaded from. */
export function nativePath(): string {
  return (loaded ??= load()).path;
}

interface Candidate {
  readonly label: string;
  open(): { addon: unknown; path: string };
}

/** The name of its platform package, `linux-x64-gnu`, and whether there is one. */
interface Platform {
  readonly name: string;
  readonly musl: boolean;
  readonly prebuilt: boolean;
}

function load(): { addon: NativeAddon; path: string } {
  const failures: string[] = [];
  const place = findPlace();
  const platform = findPlatform(place);
  for (const candidate of candidates(place, platform)) {
    try {
      const { addon, path } = candidate.open();
      const typed = addon as NativeAddon;
      typed.setErrorClass(GradlinkError);
      return { addon: typed, path };
    } catch (error) {
      failures.push(`  ${candidate.label}: ${firstLine(error)}`);
    }
  }
  throw new GradlinkError('ERR_BACKEND_UNAVAILABLE', failureMessage(failures, platform));
}

interface Place {
  /** The folder of gradlink's package.json; undefined in a bundle without gradlink beside it. */
  readonly folder: string | undefined;
  /** `require` for gradlink's dependencies. */
  readonly require: NodeJS.Require;
}

/**
 * Where to search. In another program's bundle: the gradlink installed beside the bundle. Never the current folder,
 * where others may place code.
 */
function findPlace(): Place {
  const own = createRequire(ownFile());
  const folder = packageFolder();
  if (folder !== undefined) return { folder, require: own };
  try {
    const manifest = own.resolve('gradlink/package.json');
    return { folder: dirname(manifest), require: createRequire(manifest) };
  } catch {
    return { folder: undefined, require: own };
  }
}

/**
 * In order: GRADLINK_BINARY exclusively; a local build in this package's folder, from a checkout or `npx gradlink
 * build`; the prebuilt package of this platform.
 *
 * pkg-prebuilds and node-gyp-build do not help: they search prebuilds/ in the package itself, so every installation
 * would carry all platforms' binaries. Platform packages need one `resolve`, as in esbuild, sharp and napi-rs; sharp's
 * detect-libc tells the libc.
 */
function candidates(place: Place, platform: Platform): Candidate[] {
  const named = process.env['GRADLINK_BINARY'];
  // A privileged process must not let its starter choose the code.
  if (named !== undefined && named !== '' && !isPrivileged()) {
    const path = resolve(named);
    // No fallback: it would hide a mistake.
    return [{ label: `GRADLINK_BINARY=${named}`, open: () => openFile(path, place.require) }];
  }
  const { folder } = place;
  return [
    ...(folder === undefined
      ? []
      : [
          {
            label: join(folder, 'build', 'Release', binaryFiles.addon),
            open: () => openBuilt(folder, place.require),
          },
        ]),
    {
      label: `package @gradlink/${platform.name}`,
      open: () => openPackaged(platform, place.require),
    },
  ];
}

function openFile(path: string, require: NodeJS.Require): { addon: unknown; path: string } {
  if (!existsSync(path)) throw new Error('no such file');
  return { addon: require(path), path };
}

function openBuilt(folder: string, require: NodeJS.Require): { addon: unknown; path: string } {
  const path = join(folder, 'build', 'Release', binaryFiles.addon);
  if (!existsSync(path)) throw new Error('not built');
  // Only this build type: others (Debug, coverage) need GRADLINK_BINARY.
  const bindings = require('bindings') as typeof bindingsFunction;
  const addon = bindings({
    bindings: binaryFiles.addon,
    module_root: folder,
    try: [['module_root', 'build', 'Release', 'bindings']],
  }) as { path?: string };
  // bindings stores the path in the exports; it does not belong to the native interface.
  delete addon.path;
  return { addon, path };
}

function openPackaged(
  { name, musl, prebuilt }: Platform,
  require: NodeJS.Require,
): { addon: unknown; path: string } {
  if (musl) throw new Error('there is none: this system has musl, the prebuilt addons need glibc');
  if (!prebuilt) throw new Error('there is none for this platform');
  const manifest = resolvePackage(`@gradlink/${name}/package.json`, require);
  if (manifest === undefined) throw new Error('not installed');
  const found = (require(manifest) as { version: string }).version;
  // The addon's exports change between versions.
  if (found !== version) throw new Error(`version ${found}, but this is gradlink ${version}`);
  return openFile(join(dirname(manifest), binaryFiles.addon), require);
}

function resolvePackage(path: string, require: NodeJS.Require): string | undefined {
  try {
    return require.resolve(path);
  } catch {
    return undefined;
  }
}

function findPlatform({ require }: Place): Platform {
  const { platform, arch } = process;
  const musl = platform === 'linux' && libcFamily(require) === 'musl';
  const libc = platform === 'linux' ? (musl ? '-musl' : '-gnu') : '';
  const name = `${platform}-${arch}${libc}`;
  return { name, musl, prebuilt: ['linux-x64-gnu', 'linux-arm64-gnu'].includes(name) };
}

function libcFamily(require: NodeJS.Require): string | null {
  try {
    return (require('detect-libc') as typeof DetectLibc).familySync();
  } catch {
    // Not installed beside a bundle: the load error tells why.
    return null;
  }
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split('\n', 1)[0] ?? message;
}

function failureMessage(failures: readonly string[], platform: Platform): string {
  return [
    `gradlink's native addon for ${platform.name} (Node ${process.versions.node}) did not load. Tried:`,
    ...failures,
    'Do one of these:',
    ...remedies(platform).map((remedy) => `  - ${remedy}`),
    '  - name a file that loads in the environment variable GRADLINK_BINARY',
  ].join('\n');
}

function remedies({ name, musl, prebuilt }: Platform): string[] {
  if (isCheckout()) return ['bash scripts/setup.sh (or, with everything installed, npm run build)'];
  if (musl) {
    return [
      'use a system with glibc, such as the image node:22-slim instead of node:22-alpine: gradlink does not support musl',
    ];
  }
  if (!name.startsWith('linux-')) {
    return [
      'take a Linux container, or WSL 2 on Windows: computing and measuring need Linux. Types, gradlink report, compare, predict and models need no addon',
    ];
  }
  const build = 'npx gradlink build (compiles it here, and says what is missing; takes minutes)';
  if (!prebuilt) return [build];
  const install = `install the package @gradlink/${name}@${version}: its tarball, or from the first release on npm install @gradlink/${name}@${version} (an optional dependency of gradlink: a lock file of another platform, or --omit=optional, leaves it out)`;
  if (packageFolder() !== undefined && !isInBundle()) return [install, build];
  const external =
    "leave gradlink out of the bundle (esbuild: --external:gradlink; webpack: externals: { gradlink: 'commonjs gradlink' }; Rollup, Vite: external: ['gradlink']), and install it where the bundle runs";
  return [external, install];
}

/** webpack writes the build machine's path into `import.meta.url`, so another file is running. */
function isInBundle(): boolean {
  const { stack = '' } = new Error();
  const names = [ownFile(), import.meta.url as string | undefined];
  return stack.includes('\n') && !names.some((name) => name !== undefined && stack.includes(name));
}
