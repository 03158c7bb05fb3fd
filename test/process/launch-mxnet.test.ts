// Command lines and variables of MXNet's tools/launch.py, as its documentation has them.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Launches } from '../support/launching.js';

const library = new URL('../../dist/index.js', import.meta.url).href;

let launches: Launches;
let program = '';
beforeAll(() => {
  launches = new Launches();
  program = join(launches.scratch, 'kvstore.mjs');
  writeFileSync(
    program,
    `import { KVStore } from ${JSON.stringify(library)};
    const type = process.argv[process.argv.indexOf('--kv-store') + 1];
    const kv = await KVStore.create(type);
    await kv.init('w', new Float32Array(3));
    const out = new Float32Array(3);
    await kv.push('w', new Float32Array(3).fill(kv.rank + 1));
    await kv.pull('w', out);
    console.log(kv.type, kv.numWorkers, kv.numServers, out.join());
    await kv.close();`,
  );
});
afterAll(() => launches.remove());

const lines = (text: string) => text.split('\n').filter((line) => line.includes('3,3,3'));

describe('launch', () => {
  it.each([[[]], [['--p3']], [['--launcher', 'local', '--env-server', 'PS_VERBOSE:1']]])(
    '-n 2 %j: as many servers as workers for a store dist_…',
    async (more) => {
      const command = ['node', program, '--kv-store', 'dist_sync'];
      const { code, stdout } = await launches.run(['-n', '2', ...more, ...command]);
      expect(code).toBe(0);
      expect(lines(stdout)).toEqual(Array.from({ length: 2 }, () => 'dist_sync 2 2 3,3,3'));
    },
  );

  it('asks about what only a shell takes for a command', async () => {
    for (const word of ['node app.js a b', 'cd /tmp && node x', 'FOO=bar']) {
      const { code, stderr } = await launches.run(['-n', '1', word]);
      expect(code).toBe(2);
      expect(stderr).toContain(word);
    }
    const few = await launches.run(['-n', '2', '-H', 'a:22,b:22', '--launcher', 'ssh', 'true']);
    expect(few.code).toBe(2);
    expect(few.stderr).toContain('ssh -p 22');
  });

  it('takes one host by its name, and says so', async () => {
    const args = ['-n', '2', '-H', 'localhost', '--launcher', 'mpi', '--dry-run', 'true'];
    const { code, stdout, stderr } = await launches.run(args);
    expect(code).toBe(0);
    expect(stdout).toContain('localhost,localhost');
    expect(stderr).toContain('-H localhost');
  });

  it("a store says that it was started by MXNet's launcher", () => {
    const { stderr } = spawnSync(process.execPath, [program, '--kv-store', 'dist_async'], {
      env: { PATH: process.env['PATH'], DMLC_ROLE: 'worker' },
      encoding: 'utf8',
    });
    expect(stderr).toMatch(/DMLC_ROLE\b.*MXNet's.*-n WORKERS -s SERVERS/);
  });
});
