// `gradlink launch --launcher ssh` on two hosts: network namespaces with a link between them, on which mpirun starts
// through a remote shell that enters them (test/hosts/netns.sh).
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { makeHosts, netns, noHosts, removeHosts } from '../support/hosts.js';
import { bearers, Launches, marked, missing, storeProgram, until } from '../support/launching.js';
import type { Started } from '../support/launching.js';
import { words } from '../support/words.js';

const name = `gl${String(process.pid % 100_000)}`;
const rank = '${OMPI_COMM_WORLD_RANK:-$PMI_RANK}';

describe.each([
  ['openmpi', 'mpirun.openmpi'],
  ['mpich', 'mpirun.mpich'],
])('two hosts, %s', (mpi, program) => {
  const reason = noHosts() ?? missing([program, 'rsync']);
  let launches: Launches;
  let hostfile = '';
  let addresses: readonly string[] = [];

  beforeEach(() => {
    launches = new Launches();
    if (reason !== undefined) return;
    addresses = makeHosts(name);
    hostfile = join(launches.scratch, 'hosts');
    writeFileSync(hostfile, addresses.map((address) => `${address} slots=2\n`).join(''));
  });
  afterEach(async () => {
    await launches.remove();
    if (reason === undefined) removeHosts(name);
  });

  const hostsTest = (title: string, test: () => Promise<void>): void => {
    it(title, async ({ skip }) => {
      if (reason !== undefined) skip(reason);
      await test();
    });
  };
  const launch = (
    args: readonly string[],
    env: Record<string, string> = {},
    cwd?: string,
    launcher = 'ssh',
  ): Started =>
    launches.start(['--launcher', launcher, '-H', hostfile, '--remote-shell', netns, ...args], {
      before: [netns, 'enter', `${name}-a`],
      env: { GRADLINK_MPI: mpi, ...env },
      ...(cwd === undefined ? {} : { cwd }),
    });

  /** A job of two ranks a host, each with processes in the background, that runs until it is ended. */
  const long = async (...options: string[]) => {
    const mark = launches.mark('there');
    const script = `sleep 600 & setsid sleep 600 & touch ${mark}${rank}; sleep 600`;
    const job = launch(
      ['-n', '4', ...options, '--env', `LAUNCH_TEST=${mark}`, 'sh', '-c', script],
      { LAUNCH_TEST: mark },
    );
    await marked(mark, 4);
    // The processes of both hosts are children of this machine: all are seen here.
    const left = () => bearers(`LAUNCH_TEST=${mark}`);
    expect(left().length).toBeGreaterThanOrEqual(12);
    return { ...job, left };
  };

  /** Daemons of mpirun and the remote shell, on either host. They end by themselves a moment after mpirun. */
  const daemons = () =>
    ['a', 'b'].flatMap((side) =>
      execFileSync('ip', ['netns', 'pids', `${name}-${side}`], { encoding: 'utf8' })
        .split('\n')
        .filter((pid) => pid !== '' && existsSync(`/proc/${pid}/exe`)),
    );

  hostsTest('fill their slots in order, and a rank knows its host', async () => {
    const { code, stdout, stderr } = await launch([
      ...words('-n 3 --tag-output --env'),
      'COLOR=light blue',
      'sh',
      '-c',
      'echo $(hostname) $COLOR',
    ]).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').sort()).toEqual([
      `[0] ${name}-a light blue`,
      `[1] ${name}-a light blue`,
      `[2] ${name}-b light blue`,
    ]);
    await until(() => daemons().length === 0);
  });

  hostsTest('meet on the network that was chosen, and the launcher listens there', async () => {
    // All that listens on the host of rank 0: the launcher, mpirun and the ranks.
    const source = `
      import { Communicator } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
      import { readFileSync } from 'node:fs';
      const comm = await Communicator.world();
      const [sum] = await comm.allReduce(Int32Array.of(comm.rank));
      const listening = readFileSync('/proc/net/tcp', 'utf8').split('\\n').map((line) => line.trim().split(/ +/))
        .filter((fields) => fields[3] === '0A').map((fields) => fields[1]);
      if (comm.rank === 0) console.log(JSON.stringify({ sum, listening }));
      await comm.close();
    `;
    const program = join(launches.scratch, 'listening.mjs');
    writeFileSync(program, source);
    const names = `none0,${name}-tob,${name}-toa`;
    const { code, stdout, stderr } = await launch([
      ...['-n', '4', '--network-interface', names, '--ports', '41000-41100'],
      ...[process.execPath, program],
    ]).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { sum, listening } = JSON.parse(stdout) as { sum: number; listening: string[] };
    expect(sum).toBe(6);
    // What else listens is MPI's.
    const launcher = listening.find((one) => parseInt(one.split(':')[1]!, 16) === 41_000) ?? '';
    const bytes = launcher.slice(0, 8).match(/../g)?.reverse() ?? [];
    expect(bytes.map((byte) => parseInt(byte, 16)).join('.')).toBe(addresses[0]);
  });

  hostsTest('carry a store with a worker and a server on each', async () => {
    const { code, stdout, stderr } = await launch([
      ...['-n', '2', '-s', '2', process.execPath, storeProgram(launches.scratch)],
    ]).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').sort()).toEqual(['0 3 2', '1 3 2']);
    await until(() => daemons().length === 0);
  });

  hostsTest('get the current folder first where that is wanted', async () => {
    const from = join(launches.scratch, 'from');
    const to = join(launches.scratch, "to what's new");
    mkdirSync(from);
    writeFileSync(join(from, 'data'), 'brought');
    const { code, stdout, stderr } = await launch(
      ['-n', '4', '--sync-dst-dir', to, 'sh', '-c', 'cat data; echo " $PWD"'],
      {},
      from,
    ).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n')).toEqual(Array(4).fill(`brought ${to}`));
  });

  hostsTest('name the rank that failed and its host', async () => {
    const script = `if [ ${rank} = 2 ]; then echo last words >&2; kill -SEGV $$; fi; sleep 600 & setsid sleep 600`;
    const { code, stderr } = await launch(['-n', '4', 'sh', '-c', script]).ended;
    expect(code).toBe(128 + 11);
    expect(stderr).toMatch(new RegExp(`rank 2 \\(process \\d+ on ${name}-b\\).*SIGSEGV`));
    expect(stderr.match(/last words/g)).toHaveLength(1);
    await until(() => daemons().length === 0);
  });

  hostsTest('are left clean after Ctrl-C', async () => {
    const { child, ended, left } = await long();
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
    expect(left()).toEqual([]);
    await until(() => daemons().length === 0);
  });

  hostsTest('are left clean after kill -9 of the launcher', async () => {
    const { child, left } = await long('--grace', '1');
    child.kill('SIGKILL');
    await until(() => left().length === 0);
    await until(() => daemons().length === 0);
  });

  hostsTest(
    'are left clean when the link between them is cut, and the lost one is named',
    async () => {
      const { ended, left } = await long('--host-timeout', '3', '--grace', '1');
      execFileSync(netns, ['cut', name]);
      const { code, stderr } = await ended;
      expect(code).not.toBe(0);
      expect(stderr).toMatch(
        new RegExp(`rank [23] \\(process \\d+ on ${name}-b\\) was lost: .* 3 s`),
      );
      await until(() => left().length === 0);
      await until(() => daemons().length === 0);
    },
  );

  const goOn = async (launcher: string): Promise<void> => {
    const mark = launches.mark('there');
    const script = `if [ $GRADLINK_RESTARTS = 0 ]; then touch ${mark}${rank}; sleep 600;
      else echo again $RANK/$WORLD_SIZE $(hostname) $MASTER_ADDR; fi`;
    const options = [
      '--elastic',
      '--host-timeout',
      '3',
      '--grace',
      '1',
      '--env',
      `ELASTIC=${mark}`,
    ];
    const args = ['-n', '4', ...options, 'sh', '-c', script];
    const { ended } = launch(args, { ELASTIC: mark }, undefined, launcher);
    await marked(mark, 4);
    execFileSync(netns, ['cut', name]);
    const { code, stdout, stderr } = await ended;
    expect(stderr).toContain(`2 workers, without ${addresses[1]!} (--elastic)`);
    const line = (at: number): string => `again ${at}/2 ${name}-a 127.0.0.1`;
    expect({ code, lines: stdout.trimEnd().split('\n').sort() }).toEqual({
      code: 0,
      lines: [line(0), line(1)],
    });
    await until(() => bearers(`ELASTIC=${mark}`).length === 0);
    await until(() => daemons().length === 0);
  };
  hostsTest('go on as the one that is left when the link is cut, with --elastic', () =>
    goOn('ssh'),
  );
  hostsTest('do so with --launcher mpi too', () => goOn('mpi'));
});

describe('the dry run', () => {
  it('shows how the folder is brought and what mpirun is told', async ({ skip }) => {
    const reason = missing(['mpirun.openmpi']);
    if (reason !== undefined) skip(reason);
    const launches = new Launches();
    const hostfile = join(launches.scratch, 'hosts');
    writeFileSync(hostfile, 'node1:2\nnode2:2\n');
    const { code, stdout } = await launches.run(
      [
        ...[...words('-n 2 -s 2 --launcher ssh -H'), hostfile, '--sync-dst-dir', '/tmp/app'],
        ...['--launcher-arg=--report-bindings', '--dry-run', 'node', 'app.js'],
      ],
      { env: { GRADLINK_MPI: 'openmpi' } },
    );
    await launches.remove();
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.slice(0, 2)).toEqual([
      `ssh node1 'mkdir -p '\\''/tmp/app'\\'''`,
      'rsync --archive --compress --rsh=ssh ./ node1:/tmp/app/',
    ]);
    expect(lines).toHaveLength(5);
    // Without keep_fqdn, Open MPI cuts a host's name at its first dot, and knows no place on node1.lab.
    expect(lines[4]).toMatch(
      /GRADLINK_NUM_WORKERS=2 .*mpirun\.openmpi .*--mca orte_keep_fqdn_hostnames 1 .*--host node1,node2,node1,node2 -wdir \/tmp\/app .*-x GRADLINK_JOB .*--report-bindings -n 4 .*launch-rank\.js\b.*\bnode app\.js$/,
    );
  });
});
