// `gradlink launch -s`: servers beside the workers, and how each ends.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, describe, expect, it } from 'vitest';

import { bearers, Launches } from '../support/launching.js';
import { words } from '../support/words.js';

const launches = new Launches();
afterAll(() => launches.remove());

const library = new URL('../../dist/index.js', import.meta.url).pathname;

/** A worker of two that pushes its rank + 1 and pulls the sum, with `kv`, and `say` for a line of output. */
function worker(body: string): string {
  const path = join(launches.scratch, `worker-${String(Math.random()).slice(2)}.mjs`);
  writeFileSync(
    path,
    `import { KVStore, createOptimizer } from ${JSON.stringify(pathToFileURL(library).href)};
     import { existsSync, writeFileSync } from 'node:fs';
     const rank = Number(process.env.GRADLINK_RANK);
     ${body}`,
  );
  return path;
}

const sum = `
  const out = new Float32Array(8);
  await kv.push('w', new Float32Array(8).fill(rank + 1));
  await kv.pull('w', out);`;

describe('servers', () => {
  it('serve a store, and end in good order when the workers have', { tags: 'smoke' }, async () => {
    const script = worker(`
      const kv = await KVStore.create('dist_sync');
      await kv.init('w', new Float32Array(8));
      ${sum}
      await kv.close();
      console.log(rank, out[0], kv.numWorkers);`);
    const logs = join(launches.scratch, 'served');
    const { code, stdout, stderr } = await launches.run(
      ['-n', '2', '-s', '2', '--output-dir', logs, process.execPath, script],
      { env: { LAUNCH_TEST: script } },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').sort()).toEqual(['0 3 2', '1 3 2']);
    expect(readFileSync(join(logs, 'server-1.err'), 'utf8')).toBe('');
    expect(readFileSync(join(logs, 'rank-1.out'), 'utf8')).toBe('1 3 2\n');
    expect(bearers(`LAUNCH_TEST=${script}`)).toEqual([]);
  });

  it('end when the workers never ask them for anything', { tags: 'smoke' }, async () => {
    const { code, stderr } = await launches.run(['-n', '2', '-s', '2', 'true']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('workers that fail', () => {
  it('are done without where the user says so', async () => {
    const mark = launches.mark('open');
    const script = worker(`
      const kv = await KVStore.create('dist_async');
      await kv.setOptimizer(createOptimizer('test'));
      await kv.init('w', new Float32Array(8));
      if (rank === 0) writeFileSync(${JSON.stringify(mark)}, '');
      // Not while the other is still opening its store.
      while (!existsSync(${JSON.stringify(mark)})) await new Promise(setImmediate);
      if (rank === 1) process.kill(process.pid, 'SIGKILL');
      while (kv.numDeadNodes() === 0) await kv.pull('w', new Float32Array(8));
      ${sum}
      console.log(out[0] !== 0);
      await kv.close();`);
    const { code, stdout, stderr } = await launches.run([
      ...words('-n 2 -s 1 --tolerate-worker-loss'),
      process.execPath,
      script,
    ]);
    expect(stderr).toMatch(/rank 1 \(process \d+\).* SIGKILL; .*\bwithout\b/);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'true\n' });
  });
});
