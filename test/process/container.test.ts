// A newcomer's two ways through the guides, in an empty container: Node, the two tarballs and nothing else.
import { execFile, execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { shellBlocks } from '../support/guides.js';
import { makeHosts, netns, noHosts, removeHosts, shapeWay } from '../support/hosts.js';
import { checkout, environment, Packed } from '../support/packages.js';

const run = promisify(execFile);
const container = join(checkout, 'test/hosts/container.sh');
const reason = noHosts();
const hosts = `box${String(process.pid)}`.slice(-8);

let packed: Packed | undefined;
let root: string;
/** Runs a program in the container; `around` is what runs the container, with the words of its call. */
const inside = async (words: readonly string[], around: readonly string[] = []) => {
  const [program, ...args] = [...around, container, 'enter', root, ...words];
  // npm asks a registry that does not answer for longer; with its starter all of the container ends.
  const options = { env: environment, maxBuffer: 2 ** 26, timeout: 200_000 };
  const { stdout } = await run(program!, args, { ...options, killSignal: 'SIGKILL' });
  return stdout;
};

/** The first line to type of a guide that begins so. */
const lineOf = (guide: string, start: string): string =>
  shellBlocks(guide)
    .flatMap((block) => block.split('\n'))
    .find((line) => line.startsWith(start))!;

beforeAll(async () => {
  if (reason !== undefined) return;
  packed = await Packed.make();
  root = join(packed.work, 'root');
  execFileSync(container, ['make', root], { env: environment });
  const offered = join(root, 'gradlink/build/npm');
  mkdirSync(offered, { recursive: true });
  for (const file of [packed.main, packed.binary])
    copyFileSync(file, join(offered, basename(file)));
  await inside(['sh', '-c', lineOf('README.md', 'npm install ')]);
});
afterAll(() => packed?.remove());
afterEach(() => {
  if (reason === undefined) removeHosts(hosts);
});

describe.skipIf(reason)('in an empty container', () => {
  test("from README's first line to a model that two ranks have trained", async () => {
    expect(await inside(['sh', '-c', lineOf('README.md', 'npx gradlink doctor')])).toContain(
      'npm install @tensorflow/tfjs-core',
    );
    await inside(['sh', '-c', lineOf('docs/training.md', 'npm install ')]);
    const told = await inside(['sh', '-c', lineOf('docs/training.md', 'npx gradlink launch ')]);
    expect(told).toMatch(/2 ranks, .* of 1000 others right/);
    expect(statSync(join(root, 'app/model.json')).size).toBeGreaterThan(10_000);
  });

  test('to a page about a host that sends slowly, of four pods with the variables of a Job', async () => {
    const [address] = makeHosts(hosts, 4);
    for (const to of ['a', 'b', 'c']) shapeWay(hosts, 'd', to, 'rate', '400mbit');
    const pairs = ['a', 'b', 'c', 'd'].map((host, rank) => {
      const job = [`RANK=${rank}`, 'WORLD_SIZE=4', 'GRADLINK_JOB=a secret of this test'];
      const meeting = [`MASTER_ADDR=${address!}`, 'MASTER_PORT=29500'];
      const command = ['npx', 'gradlink', 'pairs', 'bandwidth', '--output', 'pairs.json'];
      return inside(
        ['/usr/bin/env', ...job, ...meeting, ...command],
        [netns, 'enter', `${hosts}-${host}`],
      );
    });
    await Promise.all(pairs);
    await inside(['npx', 'gradlink', 'report', 'pairs.json', '-o', 'page.html']);
    const page = readFileSync(join(root, 'app/page.html'), 'utf8');
    const text = page.replaceAll(/<[^>]*>/g, ' ');
    const [poor] = /poor: \d[^<>]*?\)/u.exec(text) ?? [];
    expect(poor).toMatch(new RegExp(`\\(rank 3 to rank \\d, ${hosts}-d - ${hosts}-[abc]\\)`, 'u'));
    const [cause] = /all ways out of [\w-]+ are slow/u.exec(text) ?? [];
    expect(cause).toContain(`${hosts}-d`);
  });
});
