// Reports that are so large that what is made of them would not end are refused when they are read.
import { describe, expect, it } from 'vitest';

import { toJson } from '../../lib/report/render.js';
import { parseReport } from '../../lib/results/read-report.js';
import type { CaseResult } from '../../lib/results/result.js';
import { errorWith } from '../support/errors.js';
import { collectiveCase, report, waived } from '../support/reports.js';

const read = (cases: readonly CaseResult[]) =>
  parseReport(toJson(report('collectives', cases)), 'run.json');
const named = (count: number): CaseResult => ({
  ...waived(),
  parameters: Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, at])),
});
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

describe('a report', () => {
  it.each([
    ['cases', [...times(50_001, waived())], /50001 cases.* 50000\b/],
    ['parameters', [named(1001)], /1001 .*parameters.* 1000\b/],
    ['parameters in many cases', [named(900), ...times(2500, waived())], /\b2000000\b/],
    ['samples', [{ ...collectiveCase(), samplesSeconds: times(2_000_001, 1) }], /2000001 samples/],
  ] as const)('of too many %s is refused', (_, cases, message) => {
    expect(() => read(cases as readonly CaseResult[])).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', message),
    );
  });

  it('of many cases is read', () => {
    expect(read(times(40_000, waived())).cases).toHaveLength(40_000);
  });
});
