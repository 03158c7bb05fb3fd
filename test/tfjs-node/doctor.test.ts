// `gradlink doctor` beside the packages, as it finds them from the current folder.
import { spawnSync } from 'node:child_process';

import { expect, it } from 'vitest';

import type { Diagnosis } from '../../lib/doctor/types.js';
import { gradlink } from '../support/launching.js';
import { tfjsNodeFolder } from '../setup/tfjs-node.js';

it("finds TensorFlow's library, its version, and what it computes on", () => {
  const { stdout, status } = spawnSync(process.execPath, [gradlink, 'doctor', '--json'], {
    cwd: tfjsNodeFolder,
    env: { ...process.env, CUDA_VISIBLE_DEVICES: '-1' },
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  const { findings } = JSON.parse(stdout) as Diagnosis;
  const of = (name: string) => findings.find((finding) => finding.name === name);
  const what = /^4\.22\.0, TensorFlow 2\.\d+\.\d+ \(\/.*\/libtensorflow(_cc)?\.so.*\), .*CPU$/;
  expect(of('tfjs-node')).toMatchObject({ status: 'ok', text: expect.stringMatching(what) });
  expect(of('tfjs-node-gpu')).toMatchObject({ status: 'degraded' });
  expect(of('tfjs-node-gpu')?.text).toMatch(what);
  expect(of('tfjs-node-gpu')?.advice).not.toBeNull();
});
