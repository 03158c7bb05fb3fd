// Where this package lies: of the sources, of dist/ and of an installed package alike.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What a module of CommonJS has, and a bundle in that format. */
declare const __filename: string | undefined;

/** This file, or the bundle that it is part of. A bundler that writes CommonJS leaves `import.meta.url` undefined. */
export function ownFile(): string {
  const url = import.meta.url as string | undefined;
  if (url?.startsWith('file:') === true) return fileURLToPath(url);
  if (typeof __filename === 'string' && isAbsolute(__filename)) return __filename;
  return resolve(process.argv[1] ?? 'gradlink.js');
}

/** The nearest folder upwards whose package.json is gradlink's; undefined inside a bundle of somebody else's. */
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

/** The folder with gradlink's package.json; undefined where gradlink was bundled into another program. */
export function packageFolder(): string | undefined {
  return (found ??= { folder: find() }).folder;
}

/**
 * A file of this package, for the programs that gradlink starts by their path.
 *
 * @param path from the package's folder
 */
export function packageFile(path: string): string {
  const folder = packageFolder();
  if (folder === undefined) throw new Error(`gradlink's own ${path} is not beside this program`);
  return join(folder, path);
}

/** Whether the package is a checkout: what is published has no sources of the TypeScript part. */
export function isCheckout(): boolean {
  const folder = packageFolder();
  return folder !== undefined && existsSync(join(folder, 'lib', 'index.ts'));
}
