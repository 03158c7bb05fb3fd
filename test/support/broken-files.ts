// Files that are not what a command asks for, and what each is called in the refusal.
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Broken {
  readonly what: string;
  readonly make: (file: string) => void;
  readonly refusal: RegExp;
}

const bytes =
  (content: string | Uint8Array): Broken['make'] =>
  (file) => {
    writeFileSync(file, content);
  };

/** None of these is text that could be looked at more closely. */
export const noText: readonly Broken[] = [
  { what: 'absent', make: () => undefined, refusal: /ENOENT/ },
  { what: 'empty', make: bytes(''), refusal: /got an empty file/ },
  {
    what: 'above the bound',
    make: (file) => {
      writeFileSync(file, '');
      truncateSync(file, 2 ** 31);
    },
    refusal: /of at most 128 MiB, .*got 2048 MiB/,
  },
  {
    what: 'binary',
    make: bytes(Buffer.from('{"a": "\u00fc\ufffd\xff\xfe"}', 'latin1')),
    refusal: /got bytes that are no UTF-8 text \(at byte 7\)/,
  },
  { what: 'a directory', make: (file) => mkdirSync(file), refusal: /got a directory/ },
  {
    what: 'a pipe that nobody writes',
    make: (file) => execFileSync('mkfifo', [file]),
    refusal: /got a named pipe; write it to a file first/,
  },
  {
    what: 'a device',
    make: (file) => {
      symlinkSync('/dev/zero', file);
    },
    refusal: /got a device/,
  },
  {
    what: 'a link to itself',
    make: (file) => {
      symlinkSync(file, file);
    },
    refusal: /ELOOP/,
  },
  {
    what: 'a path through a file',
    make: () => undefined,
    refusal: /ENOENT|ENOTDIR/,
  },
];

const deep = 200_000;

/** Texts that are no JSON, or JSON of another kind. */
export const noReport: readonly Broken[] = [
  ['torn', '{"schemaVersion": 1,\n "run": {"to', /no JSON \(wrong from line 2, column 10\)/],
  ['torn between tokens', '{"schemaVersion": 1,\n', /it ends too early, line 2, column 1/],
  ['an array', '[]', /JSON that is an array, not an object/],
  ['null', 'null', /JSON that is null/],
  ['a number', '1', /JSON that is a number/],
  ['an empty object', '{}', /JSON without a schemaVersion/],
  ['of an inherited version', '{"__proto__": {"schemaVersion": 1}}', /without a schemaVersion/],
  ['newer', '{"schemaVersion": 2}', /schema version 2; .* reads 1, .* newer one/],
  ['older', '{"schemaVersion": 0}', /schema version 0; .* run the measurement again/],
  ['of no version', '{"schemaVersion": {"toString": 1}}', /schemaVersion is an object/],
  ['nothing else', '{"schemaVersion": 1}', /must have required property 'run'/],
  ['nested deeply', '['.repeat(deep) + ']'.repeat(deep), /JSON that is an array/],
  ['nested deeply and torn', '['.repeat(deep), /ends too early, line 1, column 200001/],
  [
    'nested deeply inside',
    `{"schemaVersion": 1, "cases": ${'['.repeat(deep)}${']'.repeat(deep)}}`,
    /must have/,
  ],
].map(([what, text, refusal]) => ({
  what: what as string,
  make: bytes(text as string),
  refusal: refusal as RegExp,
}));

/** Makes one in a folder; its path. */
export function makeBroken(folder: string, { what, make }: Broken): string {
  const file =
    what === 'a path through a file'
      ? join(import.meta.filename, 'run.json')
      : join(folder, `${what.replaceAll(' ', '-')}.json`);
  make(file);
  return file;
}
