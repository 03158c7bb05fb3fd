// What a shared object asks of the system that loads it, against the floor that the documentation promises.
import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';

/**
 * The newest version of each library's interface that a packed binary may need: those of Debian 12's, Ubuntu 22.04's and
 * RHEL 9's time. docs/install.md and the platform package's README say so too. There is no entry for libstdc++
 * (GLIBCXX, CXXABI): it is linked in, because the compilers' is newer than that of RHEL 9.
 */
export const floor = { GLIBC: '2.34', GCC: '7.0.0' };

/** By name, without what every system with glibc has. An MPI is there wherever its shim is asked for. */
const libraries = /^(libc|libm|libgcc_s|libdl|libpthread|librt|ld-linux[-\w]*|libmpi|libmpich)\.so/;

function isNewer(one, other) {
  const [a, b] = [one, other].map((text) => text.split('.').map(Number));
  for (let i = 0; i < Math.max(a.length, b.length); ++i) {
    if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) > (b[i] ?? 0);
  }
  return false;
}

/** @param {string} text of `readelf --version-info --dynamic --wide` */
export function problemsOf(text) {
  const problems = new Set();
  // Only what it needs; "definitions" before are what it offers.
  const needs = text.slice(Math.max(0, text.search(/^Version needs section/m)));
  for (const [, prefix, version] of needs.matchAll(/Name: ([A-Z]+)_([\d.]+)/g)) {
    const most = floor[prefix];
    if (most === undefined)
      problems.add(`${prefix}_${version}, of a library that is to be linked in`);
    else if (isNewer(version, most)) problems.add(`${prefix}_${version}, newer than ${most}`);
  }
  for (const [, library] of text.matchAll(/\(NEEDED\)[^[\n]*\[([^\]\n]+)\]/g)) {
    if (!libraries.test(library)) problems.add(library);
  }
  return [...problems];
}

/** @throws with everything that is above the floor */
export function checkNeeds(file) {
  const text = execFileSync('readelf', ['--version-info', '--dynamic', '--wide', file], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    env: { ...process.env, LC_ALL: 'C' },
  });
  const problems = problemsOf(text);
  if (problems.length > 0) {
    throw new Error(
      [
        `${basename(file)} needs more than systems with glibc ${floor.GLIBC} have:`,
        ...problems,
      ].join('\n  '),
    );
  }
}
