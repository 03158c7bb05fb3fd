// The folder of this package, from the sources, dist/ or an installed package.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Set in CommonJS modules and bundles. */
declare const __filename: string | undefined;

/** This file, or its bundle. A bundler that writes CommonJS leaves `import.meta.url` undefined. */
export function ownFile(): string {
  const url = import.meta.url as string | undefined;
  if (url?.startsWith('file:') === true) return fileURLToPath(url);
  if (typeof __filename === 'string' && isAbsolute(__filename)) return __filename;
  return resolve(process.argv[1] ?? 'gradlink.js');
}

/** The nearest parent folder with gradlink's package.json; undefined inside another program's bundle. */
function find(): string | undefined {
  for (let folder = dirname(ownFile()); ; folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) {
      const { name } = JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown };
      if (name === 'gradlink') return folder;
    }
    if (dirname(folder) === folder) return undefined;
  }
}

let found: { readonly folder: string | undefined } | undefined;

/** The folder with gradlink's package.json; undefined if gradlink is bundled into another program. */
export function packageFolder(): string | undefined {
  return (found ??= { folder: find() }).folder;
}

/**
 * A file of this package, for programs that gradlink starts by path.
 *
 * @param path relative to the package's folder
 */
export function packageFile(path: string): string {
  const folder = packageFolder();
  if (folder === undefined) throw new Error(`gradlink's own ${path} is not beside this program`);
  return join(folder, path);
}

/** Whether the package is a checkout: the published one has no TypeScript sources. */
export function isCheckout(): boolean {
  const folder = packageFolder();
  return folder !== undefined && existsSync(join(folder, 'lib', 'index.ts'));
}
