// A vitest reporter for what its JSON reporter leaves out: why a test was skipped (`context.skip('reason')`). Writes
// build/test-results/vitest-skips.json, from full test name to reason, which test-summary.mjs prints.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './native.mjs';

export default class SkipReporter {
  onTestRunEnd(modules) {
    const reasons = {};
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state, note } = test.result();
        if (state === 'skipped') reasons[test.fullName.replaceAll(' > ', ' ')] = note ?? '';
      }
    }
    const folder = join(root, 'build', 'test-results');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'vitest-skips.json'), JSON.stringify(reasons));
  }
}
