import { describe, expect, it } from 'vitest';

import { failedCase } from '../../lib/results/case.js';
import { csvText } from '../../lib/report/csv.js';
import { renderReport, reportFormats, toCsv, toMarkdown } from '../../lib/report/index.js';
import type { CaseResult, MeasuredCase } from '../../lib/results/result.js';
import { collectiveCase, report, storeCase, waived } from '../support/reports.js';

const mxnetLines = [
  'INFO:root:num of arrays = 205, total size = 257.991328 MB',
  'INFO:root:iter 1, 0.023242 sec, 11.100222 GB/sec per gpu, error 0.000000',
  'INFO:root:iter 2, 0.023106 sec, 11.165508 GB/sec per gpu, error 0.000000',
  'INFO:root:iter 3, 0.023218 sec, 11.111735 GB/sec per gpu, error 0.000000',
  'INFO:root:iter 4, 0.023193 sec, 11.123614 GB/sec per gpu, error 0.000000',
  'INFO:root:iter 5, 0.023089 sec, 11.173694 GB/sec per gpu, error 0.000000',
];

describe('text of measure', () => {
  const lines = renderReport(report('measure', [storeCase()]), 'text').split('\n');

  it("has MXNet's lines to the letter", () => {
    expect(lines[0]).toMatch(/^INFO:root:Namespace\(gpus=None, kv_store='device', /);
    // What the original has no options for.
    expect(lines[1]).toMatch(/^INFO:root:also /);
    expect(lines.slice(2, 8)).toEqual(mxnetLines);
  });

  it('then what the original does not say', () => {
    const summary = lines.slice(8).join('\n');
    for (const words of [
      'median 23.19 ms, min 23.09 ms, p95 23.24 ms',
      '(5 samples)',
      '11.12 GB/s (11.10 to 11.17 GB/s, 94 % interval) = S * 2(n-1)/n / t',
      'must move  1.201 GiB',
      '60.00 GB/s read',
      'ratio      93 %',
      'verdict    good',
      'Example CPU, 2 cores, avx2, 2 threads, 8.0 GiB, Linux 6.1.0, node v20.19.0',
    ]) {
      expect(summary).toContain(words);
    }
  });

  it('says why a case failed, and which of several it is', () => {
    const text = renderReport(report('measure', [storeCase(0.5), storeCase()]), 'text');
    expect(text).toContain('error      wrong result: relative error 0.5 is above 0.0001');
    expect(text.match(/^kvstore kvStore=device network=resnet devices=2$/gm)).toHaveLength(4);
  });
});

describe('text of collectives', () => {
  const cases = [
    collectiveCase({ count: 2 }),
    collectiveCase({ count: 2, placement: 'in-place' }),
    collectiveCase(),
    collectiveCase({ placement: 'in-place', wrong: 3 }),
    waived(),
  ];
  const lines = renderReport(report('collectives', cases), 'text').split('\n');
  const data = lines.filter((line) => line !== '' && !line.startsWith('#'));

  it('has a line a size, columns in the order of nccl-tests', () => {
    expect(data).toHaveLength(3);
    expect(data[1]?.trim().split(/\s+/).slice(0, 13)).toEqual([
      ...['4194304', '1048576', 'float32', 'sum', '-1'],
      ...['2000.0', '2.10', '3.15', '0'],
      ...['2000.0', '2.10', '3.15', '3'],
    ]);
    expect(data[1]).toMatch(/84 %\s+84 %$/);
  });

  it('shows a waived case as N/A with its reason', () => {
    expect(data[2]).toContain('N/A');
    expect(lines.join('\n')).toContain('# waived (in-place): no in-place');
  });

  it('counts wrong values, and calls any failure one', () => {
    expect(lines).toContainEqual(expect.stringMatching(/^# .*bounds values : 3 FAILED$/));
    const failed = failedCase({ name: 'all_reduce', parameters: {} }, new Error('lost'));
    const text = renderReport(report('collectives', [failed]), 'text');
    expect(text).toMatch(/^# .*bounds values : 0 FAILED$/m);
    const fine = renderReport(report('collectives', [collectiveCase()]), 'text');
    expect(fine).toMatch(/^# .*bounds values : 0 OK$/m);
    expect(fine).toMatch(/# Avg .*bandwidth {4}: 3\.1457/);
  });
});

describe('CSV', () => {
  const [header = '', ...rows] = toCsv(
    report('collectives', [collectiveCase(), storeCase(), waived()]),
  )
    .trimEnd()
    .split('\n');

  it('has a column for every parameter of any case, units in the names', () => {
    const columns = header.split(',');
    expect(columns.slice(0, 5)).toEqual([
      'name',
      'status',
      'reason',
      'parameter.bytes',
      'parameter.count',
    ]);
    expect(columns).toContain('parameter.kvStore');
    expect(new Set(columns).size).toBe(columns.length);
  });

  it('has numbers without what sums of doubles leave, and whole ones to the last digit', () => {
    const text = csvText([[0.0037141059999999016, 9007199254740991, 1234.123456789, 0.1 + 0.2, 0]]);
    expect(text).toBe('0.003714106,9007199254740991,1234.12345679,0.3,0\n');
    // A nanosecond of a step that takes a minute.
    expect(csvText([[61.000000001, 1e-9]])).toBe('61.000000001,1e-9\n');
  });

  it('has each figure as it is, of seconds and bytes, and leaves absent ones empty', () => {
    const one = collectiveCase() as MeasuredCase;
    const rate = (bytesPerSecond: number) => ({ ...one.busBandwidth, bytesPerSecond });
    const medianInterval = { lowerSeconds: 6, upperSeconds: 7, confidence: 0.5 };
    const seconds = { minSeconds: 1, medianSeconds: 2, p95Seconds: 3, p99Seconds: 4 };
    const bound = { mustMoveBytes: 11, copyBytesPerSecond: 12, boundSeconds: 13, ratio: 14 };
    const numbered: CaseResult = {
      ...one,
      statistics: { ...one.statistics, ...seconds, meanSeconds: 5, medianInterval },
      algorithmBandwidth: rate(9),
      busBandwidth: rate(10),
      limit: { ...one.limit!, ...bound },
    };
    const [columns = [], cells = []] = toCsv(report('collectives', [numbered]))
      .split('\n')
      .map((line) => line.split(','));
    expect(cells.slice(columns.indexOf('bytes'), columns.indexOf('wrong'))).toEqual(
      '4194304,,6,10,1,2,3,4,5,6,7,0.5,9,10,11,12,,13,14'.split(','),
    );
    expect(rows).toHaveLength(3);
    expect(rows[0]?.split(',')[header.split(',').indexOf('parameter.kvStore')]).toBe('');
  });

  it('quotes what would break a row', () => {
    const odd = failedCase({ name: 'a,b', parameters: {} }, new Error('said "no"\nand left'));
    const text = toCsv(report('measure', [odd]));
    expect(text).toContain('"a,b",error,"said ""no""\nand left"');
  });

  it('has texts for formulas, and numbers below zero as they are', () => {
    const parameters = { a: '=1+2', b: '-2', c: '@x', root: -1, shared: false };
    const text = toCsv(report('measure', [failedCase({ name: '+1', parameters }, new Error('x'))]));
    const [, row = ''] = text.split('\n');
    expect(row.split(',').slice(0, 8)).toEqual([
      ...["'+1", 'error', 'x'],
      ...["'=1+2", "'-2", "'@x", '-1', 'false'],
    ]);
  });
});

describe('Markdown', () => {
  it('has a row a case, with bars escaped and the formulas below', () => {
    const text = toMarkdown(report('collectives', [collectiveCase(), waived()]));
    const rows = text.split('\n').filter((line) => line.startsWith('|'));
    expect(rows).toHaveLength(4);
    expect(rows[3]).toContain('waived: no in-place \\| try out-of-place');
    for (const row of rows) expect(row.replaceAll('\\|', '').split('|')).toHaveLength(12);
    expect(text).toContain('Bus bandwidth = algbw * 2(n-1)/n.');
  });
});

describe('every format', () => {
  it.each(reportFormats)('%s takes a report without cases and ends in a line break', (format) => {
    for (const tool of ['measure', 'collectives']) {
      const text = renderReport(report(tool, []), format);
      expect(text.endsWith('\n')).toBe(true);
      expect(text).not.toMatch(/NaN|undefined|Infinity/);
    }
  });
});
