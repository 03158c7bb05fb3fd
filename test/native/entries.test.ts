// Every entry of the package, imported and required by its name, gives the same.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, unknown>;
};
const entries = Object.keys(exports).filter((entry) => !entry.endsWith('.json'));

it.each(entries)('%s is imported and required', (entry) => {
  const name = JSON.stringify(entry.replace('.', 'gradlink'));
  const program = `
    import { createRequire } from 'node:module';
    const imported = await import(${name});
    const names = Object.keys(imported);
    const required = process.features.require_module ? createRequire(import.meta.url)(${name}) : imported;
    console.log(JSON.stringify([names.length > 0, names.every((one) => required[one] === imported[one])]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    encoding: 'utf8',
  });
  expect({ stdout, failed: stderr.includes('Error') }).toEqual({
    stdout: '[true,true]\n',
    failed: false,
  });
});
