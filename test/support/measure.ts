import { Ajv } from 'ajv';
import { expect } from 'vitest';

import { hasMeasurement, reportSchema, type Report } from '../../lib/measure/index.js';
import { readReport } from '../../lib/results/read-report.js';
import type { CaseResult, Measurement } from '../../lib/results/result.js';
import { gradlink } from './cli.js';
import { words } from './words.js';

/** 109,386 elements in 6 arrays: small enough for dozens of runs. */
export const small = words('measure --network mlp --image-shape 1,28,28 --num-classes 10');

/** `gradlink measure` on a small network, in this process. */
export const measure = (...argv: string[]) => gradlink([...small, ...argv]);

const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(reportSchema);

/** Fails unless it follows the schema. */
export function expectReport(value: unknown): asserts value is Report {
  expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
}

/** The JSON report in a text, which must follow the schema. */
export function parseReport(text: string): Report {
  const value: unknown = JSON.parse(text);
  expectReport(value);
  return value;
}

/** The first case of the report in a file, which has figures. */
export function measuredIn(file: string): CaseResult & Measurement {
  const [one] = readReport(file).cases;
  if (one === undefined || !hasMeasurement(one)) throw new Error(`${file}: no measurement`);
  return one;
}

/** The lines of the original, as a script that reads it would find them. */
export function iterations(stderr: string) {
  const pattern =
    /^INFO:root:iter (\d+), (\d+\.\d{6}) sec, (\d+\.\d{6}) GB\/sec per gpu, error (-?\d+\.\d{6})$/gm;
  return [...stderr.matchAll(pattern)].map((match) => match.slice(1).map(Number));
}
