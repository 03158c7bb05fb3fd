// What the contenders share: files beside this one, and a folder for what is compiled.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = (file) => fileURLToPath(new URL(file, import.meta.url));

/** Gone when the process exits. */
export const work = mkdtempSync(join(tmpdir(), 'gradlink-peers-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

export const list = (values) => values.join(',');
