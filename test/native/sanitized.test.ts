// Only of the runs under a sanitizer: that it really watches the addon. Else all that these runs show is nothing.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { nativePath } from '../../lib/native/load.js';
import { sanitizer } from '../setup/sanitizer.js';

const marks = {
  address: { symbol: /\b__asan_report_load8\b/, runtime: /libasan\.so/ },
  thread: { symbol: /\b__tsan_read8\b/, runtime: /libtsan\.so/ },
} as const;

it('the addon is instrumented, and the runtime of the sanitizer is in the process', () => {
  const { symbol, runtime } = marks[sanitizer!];
  const symbols = execFileSync('nm', ['-D', '--undefined-only', nativePath()], {
    encoding: 'utf8',
  });
  expect(symbols).toMatch(symbol);
  expect(readFileSync('/proc/self/maps', 'utf8')).toMatch(runtime);
});
