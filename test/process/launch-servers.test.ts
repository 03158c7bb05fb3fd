// `gradlink launch -s`: servers beside the workers, and how each ends.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, describe, expect, it } from 'vitest';

import { bearers, Launches, until } from '../support/launching.js';
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
  it('are told their places, and workers how many there are', async () => {
    const { code, stdout } = await launches.run(words('-n 1 -s 2 --dry-run node a.js'));
    expect(code).toBe(0);
    const [first, ...servers] = stdout.trimEnd().split('\n');
    expect(first).toMatch(/GRADLINK_NUM_SERVERS=2 .*GRADLINK_ROLE=worker .*node a\.js$/);
    expect(servers).toEqual(
      [0, 1].map((rank) =>
        expect.stringMatching(
          new RegExp(
            `GRADLINK_NUM_WORKERS=1 .*GRADLINK_ROLE=server GRADLINK_SERVER_RANK=${String(rank)} .*gradlink\\.js serve$`,
          ),
        ),
      ),
    );
    expect(servers.join('\n')).not.toContain('GRADLINK_RANK');
  });

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

  it('that die end the job, which names them', async () => {
    const mark = launches.mark('pid');
    // The shell is the worker; it finds the server by its role and the job's secret.
    const script = `until grep -lsaF GRADLINK_SERVER_RANK=0 /proc/[0-9]*/environ | while read f; do
        grep -qaF "GRADLINK_JOB=$GRADLINK_JOB" $f && echo $f | tr -dc 0-9 >${mark} && break; done; [ -s ${mark} ]; do :; done
      kill -KILL $(cat ${mark}); sleep 600`;
    const { code, stderr } = await launches.run(['-n', '1', '-s', '1', 'sh', '-c', script]);
    expect(code).toBe(137);
    expect(stderr).toMatch(
      new RegExp(`server 0 \\(process ${readFileSync(mark, 'utf8')}\\).* SIGKILL;`),
    );
  });
});

describe('workers that fail', () => {
  it('end the servers too', async () => {
    const { code, stderr } = await launches.run(
      ['-n', '2', '-s', '1', 'sh', '-c', 'if [ $GRADLINK_RANK = 1 ]; then exit 5; fi; sleep 600'],
      { env: { LAUNCH_TEST: launches.scratch } },
    );
    expect(code).toBe(5);
    expect(stderr).toMatch(/rank 1 \(process \d+\).* status 5;/);
    expect(bearers(`LAUNCH_TEST=${launches.scratch}`)).toEqual([]);
  });

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

  it('are too many when none is left', async () => {
    const { code, stderr } = await launches.run([
      ...words('-n 2 --tolerate-worker-loss sh -c'),
      'exit $((GRADLINK_RANK + 3))',
    ]);
    expect([3, 4]).toContain(code);
    expect(stderr).toContain('was ended');
  });
});

it('Ctrl-C ends workers and servers', async () => {
  const mark = launches.mark('there');
  const { child, ended } = launches.start(
    ['-n', '1', '-s', '2', 'sh', '-c', `touch ${mark}; sleep 600`],
    { env: { LAUNCH_TEST: mark } },
  );
  // The launcher, a shell and its child, two servers.
  await until(() => bearers(`LAUNCH_TEST=${mark}`).length >= 5);
  child.kill('SIGINT');
  expect((await ended).code).toBe(130);
  expect(bearers(`LAUNCH_TEST=${mark}`)).toEqual([]);
});
