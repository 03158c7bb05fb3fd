// Where the guide tells what to do about an error.
import { join } from 'node:path';

import { packageFolder } from './package-folder.js';

/** The page with a section for each code, of the checkout and of an installed package alike. */
const page = 'docs/troubleshooting.md';

/**
 * The section of an error code, as a path: it needs no network, and fits the version that is installed. Inside a bundle
 * of somebody else's it is the path from gradlink's own folder.
 */
export function helpFor(code: string): string {
  // An error made of anything at all is an error still.
  const known = typeof (code as unknown) === 'string';
  const section = known ? `${page}#${code.toLowerCase()}` : page;
  const folder = packageFolder();
  return folder === undefined ? section : join(folder, section);
}
