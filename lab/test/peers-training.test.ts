// The training beside the peers where one of them fails: what was measured stays.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const program = fileURLToPath(new URL('../peers/training/run.js', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'gradlink-peers-training-'));
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

/** Stands where Python is: imports all, trains torch's side in made-up times, and TensorFlow's on one worker alone. */
const python = `#!/bin/sh
[ "$1" = -c ] && exit 0
case "$1 $TF_CONFIG" in
  *torch_ddp.py*) echo '{"rank": 0, "seconds": [0.5, 0.25], "loss": 2}' ;;
  *127.0.0.1*127.0.0.1*) echo no memory >&2; exit 3 ;;
  *) echo '{"rank": 0, "seconds": [0.125], "loss": 1}' ;;
esac
`;

describe('the training beside the peers', () => {
  it('names who failed, and keeps the figures of the others and its own', (context) => {
    if (availableParallelism() < 2) context.skip('needs two cores');
    const fake = join(scratch, 'python3');
    writeFileSync(fake, python);
    chmodSync(fake, 0o755);
    const output = join(scratch, 'raw.json');
    const { status, stdout } = spawnSync(
      process.execPath,
      [program, '--rounds', '2', '--steps', '2', '--output', output],
      { encoding: 'utf8', env: { ...process.env, GRADLINK_PEERS_PYTHON: fake } },
    );
    expect(status, stdout).toBe(1);
    expect(stdout).toMatch(/^torch, .* +375\.00 ms +375\.00 ms +0\.00 ms +0\.0 % +2\.00 +2\.000$/m);
    expect(stdout).toMatch(/^TensorFlow, .* +125\.00 ms +- +- +- +- +1\.000$/m);
    expect(stdout).toMatch(/^TensorFlow, .*: failed with 2 .*round 1: .* no memory/m);
    const { raw, failed } = JSON.parse(readFileSync(output, 'utf8')) as {
      raw: { id: string; samples: Record<string, number[][]> }[];
      failed: [string, string][];
    };
    expect(failed).toHaveLength(1);
    expect(raw.find(({ id }) => id === 'torch')?.samples['2']).toHaveLength(2);
    expect(raw.find(({ id }) => id === 'tensorflow')?.samples['1']).toHaveLength(1);
  });
});
