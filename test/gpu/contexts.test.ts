// A context takes some 500 MiB of a GPU and part of a second: it is made where something runs, and what one GPU refuses is
// that GPU's.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

import type { Diagnosis } from '../../lib/doctor/types.js';
import { reportOf, runScript } from '../support/gpu-commands.js';
import { fourGpus, onRealGpus } from './setup/fakes.js';
import { folderOfEachTest } from '../support/folders.js';

Object.assign(process.env, fourGpus);

let folder = '';
folderOfEachTest((made) => (folder = made));

/** Runs a command, and tells of each process that made contexts on which GPUs. */
async function contextsOf(script: string, args: readonly string[], faults = '') {
  const file = join(folder, 'contexts');
  const { code, stderr } = await runScript(script, args, {
    GRADLINK_FAKE_CONTEXTS: file,
    ...(faults === '' ? {} : { GRADLINK_FAKE_FAULTS: faults }),
  });
  expect(code, stderr).toBe(0);
  const processes = new Map<string, string[]>();
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // No process made one.
  }
  for (const [, pid, gpu] of text.matchAll(/^cuda (\d+): (gpu:\d+)$/gm)) {
    processes.set(pid!, [...(processes.get(pid!) ?? []), gpu!]);
  }
  return [...processes.values()].sort();
}

const job = ['-n', '2', process.execPath, 'bench/collectives.js', 'all_reduce'];
const sizes = ['-g', '1', '-b', '1K', '-e', '1K'];

describe.skipIf(onRealGpus)('contexts', () => {
  it.each(['doctor.js', 'topo.js'])('%s makes none', async (script) => {
    expect(await contextsOf(script, [])).toEqual([]);
  });

  it('a rank of a job makes that of its own GPU, which may then be its alone', async () => {
    const exclusive = `exclusive=${join(folder, 'lock')}`;
    expect(await contextsOf('gradlink.js', ['launch', ...job, ...sizes], exclusive)).toEqual([
      ['gpu:0'],
      ['gpu:1'],
    ]);
  });

  it('a GPU that refuses one fails in its own figures, and doctor names one that nobody may use', async () => {
    const argv = ['--quick', '-b', '1', '-t', 'host_to_device_memcpy_ce'];
    const { code, report } = await reportOf('p2p.js', argv, {
      GRADLINK_FAKE_FAULTS: 'retain=214@1,prohibited=2',
    });
    expect(code).toBe(1);
    const failed = report.cases.filter(({ status }) => status === 'error');
    expect(failed.map(({ parameters }) => parameters.to)).toEqual(['gpu:1', 'gpu:2']);
    expect(report.cases).toHaveLength(4);

    const { stdout } = await runScript('doctor.js', ['--json'], {
      GRADLINK_FAKE_FAULTS: 'prohibited=2',
    });
    const { findings } = JSON.parse(stdout) as Diagnosis;
    const gpus = findings.filter(({ name }) => name.startsWith('gpu:'));
    expect(gpus.map(({ status }) => status)).toEqual(['ok', 'ok', 'degraded', 'ok']);
  });
});
