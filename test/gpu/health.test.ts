// What the GPUs' counters say over rounds of a check in one process. The stand-in has an XID error as soon as somebody
// listens.
import { expect, it } from 'vitest';

import { HealthPart } from '../../lib/check/gpus.js';
import { readMachine } from '../../lib/measure/machine/gpus.js';
import { onRealGpus } from './setup/fakes.js';

process.env.GRADLINK_FAKE_FAULTS = 'xid=1:48';

it('an XID error between two rounds is told in the next', ({ skip }) => {
  skip(onRealGpus, 'only the stand-ins have XID errors to order');
  const bad = () =>
    new HealthPart(readMachine([0, 1]))
      .parts()
      .flatMap(({ status, parameters: { gpu } }) => (status === 'error' ? [gpu] : []));
  // The round before has ended when it comes.
  new HealthPart(readMachine([0, 1]));
  expect(bad()).toEqual(['gpu:1']);
  expect(bad()).toEqual([]);
});
