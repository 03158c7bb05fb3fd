// A vitest reporter for what its JSON reporter leaves out: why a test was skipped (`context.skip('reason')`), which tests
// were left to another layer by --tags-filter, and errors outside any test, such as a rejection that nobody handled, which
// make vitest fail. Writes NAME.skips.json beside the JSON reporter's NAME.json; test-summary.mjs reads both.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { createTagsFilter } from '@vitest/runner/utils';

export default class SkipReporter {
  onInit(vitest) {
    const { tagsFilter, tags, outputFile } = vitest.config;
    this.isOfLayer = tagsFilter ? createTagsFilter(tagsFilter, tags) : () => true;
    this.output = outputFile?.json?.replace(/json$/, 'skips.json');
  }

  onTestRunEnd(modules, unhandledErrors = []) {
    if (!this.output) return;
    const reasons = {};
    const otherLayers = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state, note } = test.result();
        if (state !== 'skipped') continue;
        const name = test.fullName.replaceAll(' > ', ' ');
        if (this.isOfLayer(test.tags)) reasons[name] = note ?? '';
        else otherLayers.push(name);
      }
    }
    mkdirSync(dirname(this.output), { recursive: true });
    const errors = unhandledErrors.map(({ name, message, VITEST_TEST_PATH: file }) =>
      [file, `${name ?? 'Error'}: ${message ?? ''}`].filter(Boolean).join(': '),
    );
    writeFileSync(this.output, JSON.stringify({ reasons, otherLayers, errors }));
  }
}
