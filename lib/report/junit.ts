// JUnit XML for CI systems: one suite with a test per case. XML cannot contain control characters, not even escaped.

import { printableLines } from '../printable.js';
import { hasMeasurement, type CaseResult, type Report } from '../results/result.js';
import { caseTitle } from './summary.js';

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
  /** Text of a passed case. */
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

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  // In attributes, readers turn unescaped ones into spaces.
  '\t': '&#x9;',
  '\n': '&#xA;',
};
const escaped = (text: string, which: RegExp): string =>
  printableLines(text).replace(which, (one) => escapes[one]!);

/** An element on separate lines; `inside`: its text, or the lines of its elements. */
function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  inside: string | readonly string[] = [],
): string[] {
  const words = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${escaped(String(value), /[&<>"\t\n]/g)}"`,
  );
  const start = `<${name}${words.join('')}`;
  if (inside.length === 0) return [`${start}/>`];
  if (typeof inside === 'string') return [`${start}>${escaped(inside, /[&<>]/g)}</${name}>`];
  return [`${start}>`, ...inside.map((line) => `  ${line}`), `</${name}>`];
}

function testcase(suite: string, one: JunitCase): string[] {
  const problems = (['failure', 'error'] as const).flatMap((kind) => {
    const problem = one[kind];
    if (problem === undefined) return [];
    const { type, message } = problem;
    return element(kind, { type, message }, message);
  });
  return element('testcase', { classname: suite, name: one.name, time: secondsText(one.seconds) }, [
    ...problems,
    ...(one.skipped === undefined ? [] : element('skipped', { message: one.skipped })),
    ...(one.output === undefined ? [] : element('system-out', {}, one.output)),
  ]);
}

export function junitXml({ name, timestamp, cases }: JunitSuite): string {
  const counts = {
    tests: cases.length,
    failures: cases.filter(({ failure }) => failure !== undefined).length,
    errors: cases.filter(({ error }) => error !== undefined).length,
    skipped: cases.filter(({ skipped }) => skipped !== undefined).length,
    time: secondsText(cases.reduce((sum, { seconds }) => sum + seconds, 0)),
  };
  const suite = element(
    'testsuite',
    { name, timestamp: timestamp.replace(/Z$/, ''), ...counts },
    cases.flatMap((one) => testcase(name, one)),
  );
  const root = element('testsuites', { name: 'gradlink', ...counts }, suite);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${root.join('\n')}\n`;
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

/** A report: wrong results are failures, exceptions errors, waived cases skipped. */
export function toJunit({ run, cases }: Report): string {
  return junitXml({
    name: `gradlink ${run.tool}`,
    timestamp: run.startedAt,
    cases: cases.map(junitCase),
  });
}
