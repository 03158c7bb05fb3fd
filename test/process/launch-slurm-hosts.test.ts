// `gradlink launch --launcher slurm --elastic` under a Slurm of two hosts (network namespaces), one of which is cut off.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, it } from 'vitest';

import { cutLink, makeHosts, netns, noHosts, removeHosts } from '../support/hosts.js';
import { Launches, marked, missing } from '../support/launching.js';

const slurm = new URL('../hosts/slurm.sh', import.meta.url).pathname;
const reason = noHosts() ?? missing(['srun', 'slurmctld', 'slurmd', 'munged'], true);
const name = `gs${String(process.pid % 100_000)}`;

let launches: Launches;
let folder = '';
let config = '';
beforeEach(() => {
  launches = new Launches();
  if (reason !== undefined) return;
  makeHosts(name);
  folder = join(launches.scratch, 'slurm');
  mkdirSync(folder);
  config = execFileSync(slurm, ['up', folder, `${name}-a`, `${name}-b`], {
    encoding: 'utf8',
  }).trim();
});
afterEach(async () => {
  if (reason === undefined) {
    execFileSync(slurm, ['down', folder]);
    removeHosts(name);
  }
  await launches.remove();
});

it.for([
  ['that Slurm chose', [], ['--launcher-arg=--ntasks-per-node=2']],
  ['that were named', ['-H', `${name}-a:2,${name}-b:2`], []],
] as const)(
  'goes on without one of the hosts %s when the link is cut',
  async ([, hosts, more], { skip }) => {
    if (reason !== undefined) skip(reason);
    const mark = launches.mark('there');
    const script = `if [ $GRADLINK_RESTARTS = 0 ]; then touch ${mark}$SLURM_PROCID; sleep 600;
    else echo again $SLURM_PROCID/$SLURM_NTASKS $(hostname); fi`;
    const options = ['--elastic', '--host-timeout', '5', '--grace', '1', ...more];
    const { ended } = launches.start(
      ['--launcher', 'slurm', '-n', '4', ...hosts, ...options, 'sh', '-c', script],
      { before: [netns, 'enter', `${name}-a`], env: { SLURM_CONF: config } },
    );
    await marked(mark, 4);
    cutLink(name);
    const { code, stdout, stderr } = await ended;
    expect(stderr).toContain(`2 workers, without ${name}-b (--elastic)`);
    expect({ code, lines: stdout.trimEnd().split('\n').sort() }).toEqual({
      code: 0,
      lines: [`again 0/2 ${name}-a`, `again 1/2 ${name}-a`],
    });
  },
);
