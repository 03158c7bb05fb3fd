// The requirements of compiling: tools of the machine, and npm packages.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { programFile, type Env } from '../doctor/system.js';

/** The build packages, in this version's releases. test/process/packing.test.ts compares them with the lock file. */
export const buildPackages: Readonly<Record<string, string>> = {
  'cmake-js': '8.0.0',
  'node-addon-api': '8.9.2',
  'node-api-headers': '1.9.0',
};

/** The missing tools with the commands that install them; undefined if none is missing. */
export function missingTools(env: Env): string | undefined {
  const has = (...programs: string[]): boolean =>
    programs.some((program) => programFile(program, env) !== undefined);
  const compiler = env['CXX']?.split(' ')[0];
  const missing = [
    ...(has(...(compiler ? [compiler] : ['c++', 'g++', 'clang++']))
      ? []
      : ['a C++20 compiler (g++ 11, clang 14 or newer)']),
    ...(has('cmake') ? [] : ['cmake (3.19 or newer)']),
    ...(has('make', 'ninja') ? [] : ['make']),
  ];
  if (missing.length === 0) return undefined;
  return [
    `the addon cannot be compiled here, for lack of ${missing.join(', ')}:`,
    '  Debian, Ubuntu:       apt-get install g++ cmake make',
    '  Fedora, RHEL, Rocky:  dnf install gcc-c++ cmake make',
  ].join('\n');
}

/** The MPIs of the shims, and the packages that their compilation needs. */
export const shimPackages = {
  openmpi: 'apt-get install libopenmpi-dev, or dnf install openmpi-devel',
  mpich: 'apt-get install libmpich-dev, or dnf install mpich-devel',
} as const;

/** A package as Node would resolve it from this folder. */
export function findPackage(
  from: string,
  name: string,
): { readonly folder: string; readonly version: string } | undefined {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, 'node_modules', name);
    const manifest = join(folder, 'package.json');
    if (existsSync(manifest)) {
      const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
      return { folder, version };
    }
    if (dirname(at) === at) return undefined;
  }
}
