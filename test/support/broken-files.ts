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
  { what: 'empty', make: bytes(''), refusal: /empty file/ },
  {
    what: 'above the bound',
    make: (file) => {
      writeFileSync(file, '');
      truncateSync(file, 2 ** 31);
    },
    refusal: /\b2048 MiB, .*\b128 MiB/,
  },
  {
    what: 'binary',
    make: bytes(Buffer.from('{"a": "\u00fc\ufffd\xff\xfe"}', 'latin1')),
    refusal: /UTF-8 .*byte 7\)/,
  },
  { what: 'a directory', make: (file) => mkdirSync(file), refusal: /a directory/ },
  {
    what: 'a pipe that nobody writes',
    make: (file) => execFileSync('mkfifo', [file]),
    refusal: /named pipe/,
  },
  {
    what: 'a device',
    make: (file) => {
      symlinkSync('/dev/zero', file);
    },
    refusal: /a device/,
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
  ['torn', '{"schemaVersion": 1,\n "run": {"to', /invalid JSON .*line 2, column 10\)/],
  ['torn between tokens', '{"schemaVersion": 1,\n', /early, line 2, column 1\b/],
  ['an array', '[]', /JSON .*\barray, not\b/],
  ['null', 'null', /JSON .*\bnull\b/],
  ['a number', '1', /JSON .*\bnumber\b/],
  ['an empty object', '{}', /JSON without .*schemaVersion/],
  ['of an inherited version', '{"__proto__": {"schemaVersion": 1}}', /without .*schemaVersion/],
  ['newer', '{"schemaVersion": 2}', /version 2; .* reads 1, .*newer/],
  ['older', '{"schemaVersion": 0}', /version 0; .*again/],
  ['of no version', '{"schemaVersion": {"toString": 1}}', /schemaVersion .*object/],
  ['nothing else', '{"schemaVersion": 1}', /property 'run'/],
  ['nested deeply', '['.repeat(deep) + ']'.repeat(deep), /JSON .*\barray\b/],
  ['nested deeply and torn', '['.repeat(deep), /early, line 1, column 200001/],
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
