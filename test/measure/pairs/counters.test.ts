// What the kernel counts while pairs exchange messages: segments that were lost, and waiting for a core.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { segmentsIn } from '../../../lib/measure/pairs/segments.js';
import { waitedSeconds } from '../../../lib/measure/pairs/waiting.js';
import { folderOfAllTests } from '../../support/folders.js';

it('segments that were sent again needlessly count as not lost', () => {
  const snmp = 'Ip: Forwarding\nIp: 1\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 5000 12\n';
  const netstat = (name: string): string => `TcpExt: SyncookiesSent ${name}\nTcpExt: 1 7\n`;
  expect(segmentsIn(snmp, netstat('TCPDSACKRecvSegs'))).toEqual({ sent: 5000, again: 5 });
  expect(segmentsIn(snmp, netstat('TCPDSACKRecv'))).toEqual({ sent: 5000, again: 5 });
  expect(segmentsIn(snmp, '')).toEqual({ sent: 5000, again: 12 });
  expect(segmentsIn('', '')).toBeUndefined();
});

describe('the time that threads waited for a core', () => {
  let tasks = '';
  folderOfAllTests((folder) => {
    tasks = folder;
  });

  it('is the second number of each, in nanoseconds', () => {
    for (const [task, text] of [
      ['1', '5000 2000000000 7\n'],
      ['2', '0 500000000 1\n'],
    ] as const) {
      mkdirSync(join(tasks, task));
      writeFileSync(join(tasks, task, 'schedstat'), text);
    }
    expect(waitedSeconds(tasks)).toBeCloseTo(2.5, 9);
    expect(waitedSeconds(join(tasks, 'none'))).toBeNaN();
  });
});
