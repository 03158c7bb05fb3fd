// torchrun's names for what a process is told.
import { describe, expect, it } from 'vitest';

import { firstNode, meetingPoint, placeEnvironment } from '../../lib/launch/torchrun.js';

const job = { env: {}, outerEnv: {} };

describe('where ranks meet', () => {
  it.each([
    ['on this host', job, '127.0.0.1'],
    ['on this host under mpirun', { ...job, control: '127.0.0.1:4000' }, '127.0.0.1'],
    ['on named hosts', { ...job, control: '10.0.0.9:4000', hosts: ['me@n1', 'n2'] }, 'n1'],
    ['at an address', { ...job, control: '10.0.0.9:4000', hosts: ['[fe80::1]'] }, 'fe80::1'],
    ['wherever srun puts them', { ...job, control: '10.0.0.9,127.0.0.1:4000' }, undefined],
    ['where the user says', { ...job, outerEnv: { MASTER_ADDR: 'far' } }, 'far'],
  ])('%s', (_, spec, address) => {
    expect(meetingPoint(spec, 'secret').MASTER_ADDR).toBe(address);
  });

  it('is a port of the job, unless the user has one', () => {
    const ports = ['one', 'other', 'one'].map((id) => meetingPoint(job, id).MASTER_PORT);
    expect(ports[0]).toBe(ports[2]);
    expect(ports[0]).not.toBe(ports[1]);
    for (const port of ports) expect(port).toMatch(/^2\d{4}$/);
    const range = { ...job, env: { GRADLINK_PORTS: '4000-4001' } };
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const among = (control: string) => [
      ...new Set(ids.map((id) => meetingPoint({ ...range, control }, id).MASTER_PORT)),
    ];
    expect(among('10.0.0.9:1').sort()).toEqual(['4000', '4001']);
    expect(['10.0.0.9:4000', '10.0.0.9:4001'].map(among)).toEqual([['4001'], ['4000']]);
    const given = { env: { MASTER_PORT: '1' }, outerEnv: { MASTER_PORT: '2' } };
    expect(meetingPoint(given, 'one').MASTER_PORT).toBe('1');
  });
});

it.each([
  ['node[03-05,7],gpu1', 'node03'],
  ['gpu1,node[1-2]', 'gpu1'],
  ['n-a[1-2].cluster', 'n-a1.cluster'],
  ['alone', 'alone'],
  ['', undefined],
  [undefined, undefined],
])('the first node of %s is %s', (list, first) => {
  expect(firstNode(list)).toBe(first);
});

it('what is not known is not told', () => {
  expect(placeEnvironment({ rank: 1, size: 2 })).toEqual({ RANK: '1', WORLD_SIZE: '2' });
  expect(placeEnvironment({ rank: 1, size: 2, localRank: 0, localSize: 1 })).toMatchObject({
    LOCAL_RANK: '0',
    LOCAL_WORLD_SIZE: '1',
  });
});
