// `gradlink launch --launcher mpi` under real mpiruns: places, output, statuses, and that nothing outlives a job.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { allowedCores, parseCoreList, shareCores } from '../../lib/launch/cores.js';
import {
  bearers,
  childrenOf,
  leaksOf,
  Launches,
  marked,
  missing,
  until,
} from '../support/launching.js';
import { parseReport } from '../support/measure.js';

const launches = new Launches();
afterAll(() => launches.remove());

const library = new URL('../../dist/index.js', import.meta.url).href;
const rank = '${OMPI_COMM_WORLD_RANK:-$PMI_RANK}';

describe.each([
  ['openmpi', 'mpirun.openmpi'],
  ['mpich', 'mpirun.mpich'],
])('%s', (mpi, program) => {
  const reason = missing([program]);
  const mpiTest = (name: string, test: () => Promise<void>, tags: string[] = []): void => {
    it(name, { tags }, async ({ skip }) => {
      if (reason !== undefined) skip(reason);
      await test();
    });
  };
  const launch = (args: readonly string[], env: Record<string, string> = {}) =>
    launches.start(['--launcher', 'mpi', ...args], { env: { GRADLINK_MPI: mpi, ...env } });

  mpiTest(
    'numbers the ranks, passes variables on and tags lines',
    async () => {
      const script = `echo ${rank} $GRADLINK_NUM_WORKERS $GRADLINK_NUM_SERVERS $GRADLINK_ROLE $GRADLINK_TRANSPORT $COLOR $GRADLINK_NUM_THREADS`;
      const { code, stdout, stderr } = await launch(
        ['-n', '3', '--tag-output', '--env', 'COLOR=light blue', 'sh', '-c', script],
        { GRADLINK_NUM_THREADS: '1' },
      ).ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout.trimEnd().split('\n').sort()).toEqual(
        ['0', '1', '2'].map((each) => `[${each}] ${each} 3 0 worker mpi light blue 1`),
      );
    },
    ['smoke'],
  );

  mpiTest('times messages between its processes over MPI', async () => {
    const quick = ['-b', '64', '-e', '64K', '-f', '1024', '-i', '3', '-w', '1', '-W', '4'];
    const { code, stdout, stderr } = await launch([
      ...['-n', '2', 'gradlink', 'pairs', ...quick, '--backend', 'mpi', '--format', 'json'],
    ]).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { cases } = parseReport(stdout);
    expect(cases).toHaveLength(8);
    for (const one of cases) {
      expect(one).toMatchObject({
        status: 'ok',
        check: { wrong: 0 },
        parameters: { backend: 'mpi' },
      });
    }
  });

  mpiTest('sets variables of the workers alone, and of the servers alone', async () => {
    const module = join(launches.scratch, `${mpi}-roles.mjs`);
    const told = `'role ' + process.env.GRADLINK_ROLE + ' ' + process.env.COLOR + ' ' + process.env.SHAPE + ' ' + process.env.GRADLINK_ROLE_ENV + '\\n'`;
    writeFileSync(module, `process.stdout.write(${told});`);
    // A job whose workers end without a store does not wait for its servers.
    const worker = join(launches.scratch, `${mpi}-worker.mjs`);
    writeFileSync(
      worker,
      `import { KVStore } from ${JSON.stringify(library)};
       await (await KVStore.create('dist_sync')).close();
       process.stdout.write(${told});`,
    );
    const { code, stdout } = await launch([
      ...['-n', '1', '-s', '1', '--env', 'SHAPE=round', '--env-worker', 'COLOR=light "blue"'],
      ...['--env-server', `GRADLINK_SERVER_MODULE=${module}`, '--env-server', 'COLOR=red'],
      ...[process.execPath, worker],
    ]).ended;
    const lines = stdout.split('\n').filter((line) => line.startsWith('role'));
    expect({ code, lines: lines.sort() }).toEqual({
      code: 0,
      lines: ['role server red round undefined', 'role worker light "blue" round undefined'],
    });
  });

  mpiTest('keeps its secret and its variables out of all that it writes', async () => {
    const where = { env: { GRADLINK_MPI: mpi } };
    const { code, leaks, shown } = await leaksOf(launches, ['--launcher', 'mpi'], where);
    expect({ code, leaks }).toEqual({ code: 0, leaks: [] });
    expect(shown).toContain('GRADLINK_NUM_WORKERS');
  });

  mpiTest("tells each worker its GPU, its place by torchrun's names, and its cores", async () => {
    const env = { CUDA_VISIBLE_DEVICES: '4,7', MASTER_PORT: '29500' };
    const script = `echo ${rank} $CUDA_VISIBLE_DEVICES $TF_FORCE_GPU_ALLOW_GROWTH $RANK/$WORLD_SIZE \\
      $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $(sed -n 's/^Cpus_allowed_list:\\s*//p' /proc/self/status)`;
    const run = (count: number, ...options: string[]) =>
      launch(['-n', String(count), ...options, 'sh', '-c', script], env).ended;
    const { code, stdout, stderr } = await run(3, '--gpu-per-worker');
    expect(code).toBe(0);
    const cores = shareCores(3, allowedCores()).map((share) => share ?? allowedCores());
    const lines = stdout.trimEnd().split('\n').sort();
    expect(lines.map((line) => line.replace(/ \S+$/, ''))).toEqual(
      [4, 7, 4].map((gpu, at) => `${at} ${gpu} true ${at}/3 ${at}/3 127.0.0.1 29500`),
    );
    expect(lines.map((line) => parseCoreList(line.split(' ').at(-1)!))).toEqual(cores);
    expect(stderr).toMatch(/^gradlink launch: 2 workers .*GPU 4: .*\n$/);
    expect((await run(1)).stdout).toMatch(/^0 4,7 0\/1 /);
  });

  mpiTest('gives the status of the rank that failed, and its last lines', async () => {
    for (const [end, told, status] of [
      ['exit 7', 'status 7', 7],
      ['kill -SEGV $$', 'SIGSEGV', 128 + 11],
    ] as const) {
      const script = `if [ ${rank} = 1 ]; then echo last words >&2; ${end}; fi; sleep 600 & setsid sleep 600`;
      const marker = `${launches.scratch}-${mpi}-${String(status)}`;
      const job = launch(['-n', '3', 'sh', '-c', script], { LAUNCH_TEST: marker });
      const { code, stderr } = await job.ended;
      expect(code).toBe(status);
      expect(stderr).toMatch(new RegExp(`rank 1 \\(process \\d+\\).* ${told};`));
      expect(stderr.match(/last words/g)).toHaveLength(1);
      expect(bearers(`LAUNCH_TEST=${marker}`)).toEqual([]);
    }
  });

  const long = async (...options: string[]) => {
    const mark = launches.mark('there');
    const script = `sleep 600 & setsid sleep 600 & touch ${mark}${rank}; sleep 600`;
    const job = launch(['-n', '2', ...options, 'sh', '-c', script], { LAUNCH_TEST: mark });
    await marked(mark, 2);
    return { ...job, left: () => bearers(`LAUNCH_TEST=${mark}`) };
  };

  mpiTest('ends everything at Ctrl-C', async () => {
    const { child, ended, left } = await long();
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).toBe(130);
    expect(stderr).toContain('by SIGINT');
    expect(left()).toEqual([]);
  });

  /** A program that tells its rank once MPI is up, and with an argument stays after that. */
  const mpiProgram = (): string => {
    const path = join(launches.scratch, `${mpi}-program`);
    writeFileSync(
      `${path}.c`,
      `#include <mpi.h>
       #include <stdio.h>
       #include <unistd.h>
       int main(int count, char** arguments) {
         int rank, size;
         MPI_Init(&count, &arguments);
         MPI_Comm_rank(MPI_COMM_WORLD, &rank);
         MPI_Comm_size(MPI_COMM_WORLD, &size);
         MPI_Barrier(MPI_COMM_WORLD);
         printf("%d of %d\\n", rank, size);
         if (count > 1) {
           char mark[1000];
           snprintf(mark, sizeof mark, "%s%d", arguments[1], rank);
           fclose(fopen(mark, "w"));
           sleep(600);
         }
         return MPI_Finalize();
       }`,
    );
    execFileSync(`mpicc.${mpi}`, ['-o', path, `${path}.c`]);
    return path;
  };
  const compilerTest = (name: string, test: () => Promise<void>): void => {
    it(name, async ({ skip }) => {
      const lacking = missing([program, `mpicc.${mpi}`]);
      if (lacking !== undefined) skip(lacking);
      await test();
    });
  };

  compilerTest('lets the processes find one another', async () => {
    const { code, stdout, stderr } = await launch(['-n', '3', mpiProgram()]).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').sort()).toEqual(['0 of 3', '1 of 3', '2 of 3']);
  });

  compilerTest('leaves no process, segment or folder when mpirun is killed', async () => {
    const mark = launches.mark('there');
    const temporary = mkdtempSync(join(launches.scratch, 'tmp-'));
    const script = `echo $PMIX_NAMESPACE >${mark}job${rank}; exec ${mpiProgram()} ${mark}`;
    const { child, ended } = launch(['-n', '3', '--grace', '1', 'sh', '-c', script], {
      LAUNCH_TEST: mark,
      TMPDIR: temporary,
    });
    await marked(mark, 3);
    // Of MPICH there is none.
    const sessions = () => readdirSync(temporary).filter((file) => file.startsWith('ompi.'));
    expect(sessions()).toHaveLength(mpi === 'openmpi' ? 1 : 0);
    const [starter = 0] = childrenOf(child).filter((pid) =>
      readFileSync(`/proc/${String(pid)}/comm`, 'utf8').startsWith('mpi'),
    );
    process.kill(starter, 'SIGKILL');
    const { code, stderr } = await ended;
    expect(code).toBe(137);
    expect(stderr).toMatch(new RegExp(`mpirun \\(process ${String(starter)}\\).* SIGKILL`));
    await until(() => bearers(`LAUNCH_TEST=${mark}`).length === 0);
    const job = Number(readFileSync(`${mark}job0`, 'utf8')).toString(16);
    expect(readdirSync('/dev/shm').filter((file) => job !== '0' && file.includes(job))).toEqual([]);
    expect(sessions()).toEqual([]);
  });
});

describe('wrong usage', () => {
  it.each([
    [['--launcher', 'ssh'], /--launcher ssh .*-H\b/],
    [['-H', '/dev/null', '--launcher', 'mpi'], /--hostfile \/dev\/null: .*\bdevice\b/],
    [['-H', '/dev/null', '--launcher', 'local'], /--hostfile.* --launcher\b.*\bssh\b/],
    [['--launcher', 'mpi', '--mpirun', '/no/mpirun'], /none as \/no\/mpirun/],
    [['--launcher', 'mpi', '--mpirun', 'true'], /MPICH's true\b/],
    [['--launcher', 'mpi', '--tolerate-worker-loss'], /--tolerate-worker-loss .*--launcher local/],
    [['--launcher', 'mpi', '--sync-dst-dir', '/tmp/x'], /--sync-dst-dir .*-H\b/],
  ])('%j', async (args, message) => {
    const { code, stderr } = await launches.run(['-n', '2', ...args, 'true']);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
