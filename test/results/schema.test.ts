import { readFileSync } from 'node:fs';

import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';

import { storeVolume } from '../../lib/results/bandwidth.js';
import { completeCase, errorCheck, failedCase, type CaseInput } from '../../lib/results/case.js';
import { describeEnvironment } from '../../lib/results/environment.js';
import { outcome, schemaVersion, type Report } from '../../lib/results/result.js';
import { compareHosts } from '../../lib/results/hosts.js';
import { reportSchema } from '../../lib/results/schema.js';
import { toJson } from '../../lib/report/render.js';
import { collectiveCase, report, sharedStoreCase, storeCase, waived } from '../support/reports.js';

const validate = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(reportSchema);

function problems(text: string): unknown {
  validate(JSON.parse(text));
  return validate.errors ?? [];
}

const thrown = Object.assign(new Error('rank 2 was killed'), { code: 'ERR_PEER_LOST' });
const everyKind = report('measure', [
  storeCase(),
  storeCase(0.5),
  sharedStoreCase(),
  collectiveCase(),
  collectiveCase({ wrong: 3 }),
  waived(),
  failedCase({ name: 'all_reduce', parameters: { bytes: 8 } }, thrown),
]);

describe('schema', () => {
  it('takes what the reports write, of every kind of case', () => {
    expect(problems(toJson(everyKind))).toEqual([]);
    expect(outcome(everyKind)).toEqual({ ok: 3, waived: 1, error: 3 });
  });

  it('takes hosts beside one another, and refuses what is none', () => {
    const seen = ['a', 'b', 'c'].map((host, rank) => ({ host, ranks: [rank] }));
    const link = { between: [0, 1] as const, medianSeconds: 2e-3, fastestSeconds: 1e-3 };
    for (const links of [[], [link]]) {
      const found: Report = { ...everyKind, hosts: compareHosts(seen, links, 8, 'host') };
      expect(problems(toJson(found))).toEqual([]);
    }
    expect(problems(JSON.stringify({ ...everyKind, hosts: {} }))).not.toEqual([]);
  });

  it('takes the environment of this machine, with the addon and without', () => {
    for (const native of [
      { simdLevel: 'avx512', threads: 2 },
      { simdLevel: null, threads: null },
    ]) {
      const found: Report = { ...everyKind, environment: describeEnvironment(native) };
      expect(problems(toJson(found))).toEqual([]);
    }
  });

  it('takes a report whose times are below the clock and whose error is not a number', () => {
    const input: CaseInput = {
      name: 'kvstore',
      parameters: {},
      samplesSeconds: [0, 0],
      volume: storeVolume({ bytes: 0, devices: 2 }),
      copyBytesPerSecond: 1e10,
      check: errorCheck(Number.NaN, 1e-4),
    };
    const result = completeCase(input);
    expect(result.status).toBe('error');
    const text = toJson(report('measure', [result]));
    expect(problems(text)).toEqual([]);
    expect(text).not.toMatch(/NaN|Infinity/);
  });

  it('takes the example of the documentation', () => {
    const guide = readFileSync(new URL('../../docs/measuring.md', import.meta.url), 'utf8');
    const example = /```json\n(.*?)```/s.exec(guide)?.[1] ?? '';
    expect(problems(example)).toEqual([]);
  });

  it('writes an option that is not finite as null', () => {
    const text = toJson({
      ...everyKind,
      run: { ...everyKind.run, options: { gcThreshold: Number.NaN } },
    });
    expect(problems(text)).toEqual([]);
    expect(text).toContain('"gcThreshold": null');
  });

  type Damage = (found: Damaged, first: Record<string, unknown>) => unknown;
  interface Damaged {
    schemaVersion?: unknown;
    environment?: unknown;
    cases: Record<string, unknown>[];
  }

  it.each<[string, Damage]>([
    ['another version', (found) => (found.schemaVersion = schemaVersion + 1)],
    ['no environment', (found) => delete found.environment],
    ['a number in a string', (_, first) => (first.bytes = '8')],
    ['a field that is missing', (_, first) => delete first.limit],
    [
      'a part of a measurement',
      (found) =>
        found.cases.push({
          status: 'error',
          name: 'x',
          parameters: {},
          reason: 'r',
          statistics: found.cases[0]!.statistics,
        }),
    ],
    ['a status that there is not', (_, first) => (first.status = 'passed')],
    ['no reason', (found) => found.cases.push({ status: 'waived', name: 'x', parameters: {} })],
  ])('refuses %s', (_, damage) => {
    const found = JSON.parse(toJson(everyKind)) as Damaged;
    const [first = {}] = found.cases;
    damage(found, first);
    expect(problems(JSON.stringify(found))).not.toEqual([]);
  });

  it('names every field that a report has', () => {
    const listed = new Set(Object.keys(reportSchema.definitions.failed.properties));
    for (const result of everyKind.cases) {
      for (const name of Object.keys(result)) expect(listed).toContain(name);
    }
    expect(Object.keys(reportSchema.definitions.environment.properties).sort()).toEqual(
      Object.keys(everyKind.environment).sort(),
    );
    expect(Object.keys(reportSchema.definitions.run.properties).sort()).toEqual(
      // Of another program's figures alone.
      [...Object.keys(everyKind.run), 'program'].sort(),
    );
  });
});
