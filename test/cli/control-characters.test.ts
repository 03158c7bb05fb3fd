// Files of somebody else whose texts a terminal would act on, and which XML may not have: none of them comes out.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { create } from 'xmlbuilder2';
import { beforeAll, describe, expect, it } from 'vitest';

import { toJson } from '../../lib/report/render.js';
import { gradlink, type Caught } from '../support/cli.js';
import { sweepRun } from '../support/page-runs.js';
import { folderOfAllTests } from '../support/folders.js';

const acting = /(?![\n\t])[\p{Cc}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/u;
const attack = '\u001b]0;pwned\u0007\u001b[2J\u009b2J\u202e\ufffe';
/** What the schema has words of its own for. */
const bound = new Set(['startedAt', 'status', 'level', 'kind', 'memory', 'by']);

let folder = '';
let file = '';
folderOfAllTests((made) => (folder = made));
/** A verdict's reason is such a word, a failed case's is text. */
const isBound = (owner: object, name: string): boolean =>
  bound.has(name) || (name === 'reason' && 'level' in owner);
beforeAll(() => {
  file = join(folder, `run${attack.replaceAll('/', '')}.json`);
  const spoilt = function (this: object, name: string, value: unknown): unknown {
    return typeof value === 'string' && !isBound(this, name) ? `${value}${attack}` : value;
  };
  const text = JSON.stringify(JSON.parse(toJson(sweepRun())), spoilt);
  writeFileSync(file, text.replaceAll('"placement"', JSON.stringify(`placement${attack}`)));
});

function expectClean({ stdout, stderr }: Caught): void {
  expect(acting.exec(stdout)?.index, stdout.slice(0, 2000)).toBeUndefined();
  expect(acting.exec(stderr)?.index, JSON.stringify(stderr)).toBeUndefined();
}

describe('control characters of a report', () => {
  it.each([
    ...['html', 'svg', 'md'].map((format) => ['report', '--format', format]),
    ['report', '--list'],
    ...['text', 'json', 'markdown', 'junit'].map((format) => ['compare', '--format', format, file]),
  ])('do not come out of gradlink %s %s %s', async (...argv) => {
    const own = argv.filter((one) => one !== '');
    const caught = await gradlink([...own, ...(own[0] === 'compare' ? [file, file] : [file])]);
    expect(caught).toMatchObject({ code: 0, stderr: '' });
    expect(caught.stdout).toContain('pwned');
    expectClean(caught);
    if (own.includes('svg')) create(caught.stdout);
  });

  it('do not come out of what refuses it', async () => {
    const caught = await gradlink(['predict', file, '--compute', '100']);
    expect(caught).toMatchObject({ code: 2, stdout: '' });
    expect(caught.stderr).toContain('pwned');
    expectClean(caught);
  });
});

it('control characters of a plan do not come out of what refuses it', async () => {
  const plan = join(folder, 'plan.yaml');
  for (const text of [
    '"\\e]0;pwned\\a\\e[2Jkey": 1\ngrid: [[1,1]]\n',
    'a: *pwned\u001b\u009b\u202e',
  ]) {
    writeFileSync(plan, text);
    const argv = ['train', '--style', 'tianshu', '--output-dir', folder, '--plan', plan];
    const caught = await gradlink(argv);
    expect(caught).toMatchObject({ code: 2, stdout: '' });
    expect(caught.stderr).toContain('pwned');
    expectClean(caught);
  }
});
