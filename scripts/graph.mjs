// Which file names which: imports between TypeScript files, includes between C++ files.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** The files below a folder of `base` whose name matches, as paths below `base`. */
export function filesUnder(base, folder, pattern) {
  return readdirSync(join(base, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => relative(base, join(entry.parentPath, entry.name)))
    .filter((file) => !file.includes('node_modules'));
}

const imports = /(?:\bfrom|\bimport)\s*(?:\(\s*)?'(\.[^']+)'/g;

/** Each import between TypeScript files of these folders, as the paths of both below `base`. Imports of types count. */
export function importsOf(base, folders = ['.']) {
  return folders
    .flatMap((folder) => filesUnder(base, folder, /\.ts$/))
    .flatMap((file) =>
      [...readFileSync(join(base, file), 'utf8').matchAll(imports)].map(([, path]) => [
        file,
        relative(base, resolve(base, dirname(file), path)).replace(/\.js$/, '.ts'),
      ]),
    );
}

/** What a C++ file includes, as it is written there. */
export function includesOf(text) {
  return [...text.matchAll(/^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]/gm)].map(
    ([, name]) => name,
  );
}
