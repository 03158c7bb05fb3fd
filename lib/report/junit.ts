// JUnit's XML, as CI systems read it: one suite, a test for each case. Control characters are no characters of XML, not even
// escaped.

import { printableLines } from '../printable.js';
import { hasMeasurement, type CaseResult, type Report } from '../results/result.js';
import { caseTitle } from './summary.js';
import { create } from './xml.js';

interface Problem {
  readonly type: string;
  readonly message: string;
}

export interface JunitCase {
  readonly name: string;
  /** Median time of the case. */
  readonly seconds: number;
  readonly failure?: Problem;
  readonly error?: Problem;
  /** Why it did not run. */
  readonly skipped?: string;
  /** Words about one that passed. */
  readonly output?: string;
}

export interface JunitSuite {
  readonly name: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly cases: readonly JunitCase[];
}

function secondsText(seconds: number): string {
  return seconds.toFixed(9);
}

/** The document, ending in a line break. */
export function junitXml({ name, timestamp, cases }: JunitSuite): string {
  const counts = {
    tests: cases.length,
    failures: cases.filter(({ failure }) => failure !== undefined).length,
    errors: cases.filter(({ error }) => error !== undefined).length,
    skipped: cases.filter(({ skipped }) => skipped !== undefined).length,
    time: secondsText(cases.reduce((sum, { seconds }) => sum + seconds, 0)),
  };
  const root = create({ version: '1.0', encoding: 'UTF-8' }).ele('testsuites', {
    name: 'gradlink',
    ...counts,
  });
  const suite = root.ele('testsuite', {
    name: printableLines(name),
    timestamp: timestamp.replace(/Z$/, ''),
    ...counts,
  });
  for (const one of cases) {
    const test = suite.ele('testcase', {
      classname: printableLines(name),
      name: printableLines(one.name),
      time: secondsText(one.seconds),
    });
    for (const kind of ['failure', 'error'] as const) {
      const problem = one[kind];
      if (problem === undefined) continue;
      const message = printableLines(problem.message);
      test.ele(kind, { type: problem.type, message }).txt(message);
    }
    if (one.skipped !== undefined) test.ele('skipped', { message: printableLines(one.skipped) });
    if (one.output !== undefined) test.ele('system-out').txt(printableLines(one.output));
  }
  return `${root.end({ prettyPrint: true })}\n`;
}

function junitCase(result: CaseResult): JunitCase {
  const title = {
    name: caseTitle(result),
    seconds: hasMeasurement(result) ? result.statistics.medianSeconds : 0,
  };
  if (result.status === 'waived') return { ...title, skipped: result.reason };
  if (result.status === 'ok') return { ...title, output: result.verdict.text };
  const problem = { type: result.code ?? 'error', message: result.reason };
  return hasMeasurement(result) ? { ...title, failure: problem } : { ...title, error: problem };
}

/** A report: a wrong result is a failure, what threw an error, what was waived is skipped. */
export function toJunit({ run, cases }: Report): string {
  return junitXml({
    name: `gradlink ${run.tool}`,
    timestamp: run.startedAt,
    cases: cases.map(junitCase),
  });
}
