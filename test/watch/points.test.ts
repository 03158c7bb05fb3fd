// The points that a run's figures make, line by line.
import { describe, expect, it } from 'vitest';

import { Figures } from '../../lib/watch/figures.js';

const row =
  '      65536         16384     float     sum      -1    42.88    1.53    2.67      0    42.83    1.53    2.68      0';

describe('the points of a run', () => {
  it('are those of one line by name, in order', () => {
    const figures = new Figures();
    for (const line of ['step 1 10 images/s', 'hello', 'loss 3', 'step 2 20 images/s']) {
      figures.add(line);
    }
    expect(figures.lines).toEqual([
      { name: 'throughput', unit: 'images/s', values: [10, 20] },
      { name: 'loss', unit: '', values: [3] },
    ]);
    expect(figures.latest(1)).toEqual([figures.lines[0]]);
  });

  it('keep the unit of the first where the program goes over to another', () => {
    const figures = new Figures();
    for (const rate of ['900 MB/s', '1.5 GB/s', '8 Gbit/s', '1 GiB/s']) {
      figures.add(`bandwidth: ${rate}`);
    }
    expect(figures.lines).toEqual([
      { name: 'bandwidth', unit: 'MB/s', values: [900, 1500, 1000, 1073.741824] },
    ]);
    const times = new Figures();
    for (const time of ['450us/step', '2ms/step']) times.add(`1/2 [==>] ${time}`);
    expect(times.lines[0]?.values).toEqual([450, expect.closeTo(2000, 9)]);
  });

  it('are those whose name has the words that were asked for', () => {
    const figures = new Figures('in place');
    expect([figures.add(row), figures.add('loss 3')]).toEqual([true, false]);
    expect(figures.lines).toEqual([
      { name: 'bus bandwidth, in place', unit: 'GB/s', values: [2.68] },
    ]);
  });
});
