// Under which sanitizer the addon runs: GRADLINK_SANITIZER=address or thread, after scripts/test-native.sh of that kind
// has built it. Node itself is not instrumented, so that the sanitizer's runtime has to be there before it.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const kinds = { address: ['libasan.so', 'libubsan.so'], thread: ['libtsan.so'] } as const;

export type Sanitizer = keyof typeof kinds;

function named(): Sanitizer | undefined {
  const kind = process.env.GRADLINK_SANITIZER ?? '';
  if (kind === '') return undefined;
  if (kind in kinds) return kind as Sanitizer;
  throw new Error(`GRADLINK_SANITIZER: expected ${Object.keys(kinds).join(' or ')}, got ${kind}`);
}

export const sanitizer = named();

function environmentOf(kind: Sanitizer): Record<string, string> {
  const compiler = process.env.CXX ?? 'g++';
  const runtimes = kinds[kind].map((library) =>
    execFileSync(compiler, [`-print-file-name=${library}`], { encoding: 'utf8' }).trim(),
  );
  const suppressions = join(root, 'native/test/thread-sanitizer.supp');
  return {
    LD_PRELOAD: runtimes.join(':'),
    GRADLINK_BINARY: join(root, `build-${kind}/Release/gradlink.node`),
    // Leaks are not looked for: V8 frees nothing when a process ends.
    ASAN_OPTIONS: 'detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:handle_segv=1',
    UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1:abort_on_error=1',
    TSAN_OPTIONS: `suppressions=${suppressions}:halt_on_error=1:abort_on_error=1:second_deadlock_stack=1:die_after_fork=0:atexit_sleep_ms=0`,
  };
}

/** What a process runs the sanitized addon with; nothing without a sanitizer. */
export const sanitizerEnvironment: Readonly<Record<string, string>> =
  sanitizer === undefined ? {} : environmentOf(sanitizer);
