import { describe, expect, it } from 'vitest';
import { create } from 'xmlbuilder2';

import { failedCase } from '../../lib/results/case.js';
import { renderReport } from '../../lib/report/render.js';
import { collectiveCase, report, waived } from '../support/reports.js';

interface Suite {
  testsuites: { testsuite: { testcase: Record<string, unknown>[] } & Record<string, string> };
}

function parsed(text: string): Suite['testsuites']['testsuite'] {
  return (create(text).end({ format: 'object' }) as unknown as Suite).testsuites.testsuite;
}

describe('JUnit', () => {
  it('tells what passed, was wrong, failed and was waived', () => {
    const thrown = Object.assign(new Error('rank 2 was killed'), { code: 'ERR_PEER_LOST' });
    const suite = parsed(
      renderReport(
        report('collectives', [
          collectiveCase(),
          collectiveCase({ wrong: 3 }),
          failedCase({ name: 'reduce', parameters: { bytes: 8 } }, thrown),
          waived(),
        ]),
        'junit',
      ),
    );
    expect(suite).toMatchObject({
      '@name': 'gradlink collectives',
      '@tests': '4',
      '@failures': '1',
      '@errors': '1',
      '@skipped': '1',
    });
    const [passed, wrong, failed, skipped] = suite.testcase;
    expect(passed).toMatchObject({ '@time': '0.002000000' });
    expect(wrong).toMatchObject({ failure: { '@type': 'ERR_WRONG_RESULT' } });
    expect(failed).toMatchObject({
      '@name': 'reduce bytes=8',
      error: { '@type': 'ERR_PEER_LOST', '@message': 'rank 2 was killed' },
    });
    expect(skipped).toHaveProperty('skipped');
  });

  it('stays XML whatever a message holds', () => {
    const nasty = new Error('a < b & "c" \u0007 ]]> \ud800 \u{1f600}');
    const text = renderReport(
      report('measure', [failedCase({ name: 'x<y', parameters: {} }, nasty)]),
      'junit',
    );
    // The reader gives attributes as they are written.
    const message = 'a &lt; b &amp; &quot;c&quot; \\u0007 ]]&gt; \\ud800 \u{1f600}';
    expect(parsed(text).testcase).toMatchObject({
      '@name': 'x&lt;y',
      error: { '@message': message },
    });
  });
});
