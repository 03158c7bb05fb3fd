// The command lines that the documentation shows.
import { readdirSync, readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);

/** README and the guides, by path from the root. */
export const guides: readonly string[] = [
  'README.md',
  ...readdirSync(new URL('docs/', root))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`),
];

export interface ShownLine {
  readonly guide: string;
  /** As shown, without comments, prompt and what starts node. */
  readonly line: string;
  /** Arguments of gradlink. */
  readonly argv: readonly string[];
}

/** Blocks of a guide that are of one of these kinds, each as it stands. */
export function blocksOf(guide: string, kinds: readonly string[]): string[] {
  const text = readFileSync(new URL(guide, root), 'utf8');
  // Of each kind, since what closes one of another kind looks like what opens one of none.
  return [...text.matchAll(/^```(\w*)\n(.*?)^```/gms)].flatMap(([, kind, block]) =>
    kinds.includes(kind!) ? [block!] : [],
  );
}

/** What a reader types. */
export const shellBlocks = (guide: string): string[] => blocksOf(guide, ['sh', 'console', '']);

/** Commands in code, in running text and in tables, with arguments that are no placeholders. */
function candidates(guide: string): string[] {
  const text = readFileSync(new URL(guide, root), 'utf8');
  const prose = text.replace(/^```.*?^```/gms, '');
  return [
    ...shellBlocks(guide).flatMap((block) => block.split('\n')),
    ...[...prose.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!),
  ];
}

const start =
  /(?:^|&& |do |\$ )(?:npx gradlink|gradlink|node bench\/gradlink\.js|node bench\/(\w+)\.js) (.*)$/;

/** What stands for something else: `NAME`, `RUN`. */
function hasPlaceholder(line: string): boolean {
  return /(^|[ |])[A-Z]{1,}(\.json)?( |$)|…/.test(line) || /^--?[a-z-]+$/.test(line);
}

/** Every command line of a guide that starts gradlink with arguments. */
export function shownLines(guide: string): ShownLine[] {
  return candidates(guide).flatMap((shown) => {
    const bare = shown
      .replace(/ +#.*$/, '')
      .replace(/;? done$/, '')
      .trim();
    const [, script, rest] = start.exec(bare) ?? [];
    if (rest === undefined || hasPlaceholder(rest) || !rest.includes('-')) return [];
    const argv = [
      ...(script === undefined ? [] : [script]),
      ...rest.replace(/ [|>].*$/, '').split(/ +/),
    ];
    return [{ guide, line: bare, argv }];
  });
}

/** What begins a command line, in running text too. */
const program = /^(?:[A-Z_]+=\S+ )*(?:npx|gradlink|node|npm|bash|mpirun|srun|apt-get|git) \S/;
/** A command by its name, or an option by those of a command: nothing to run. */
const mention = /^gradlink [a-z0-9]+(?: --?[a-z-]+)?$/;

/** A command line as a reader would type it. */
export interface CommandLine {
  readonly guide: string;
  readonly line: string;
  /** In a block, which a walk runs as a whole. */
  readonly inBlock: boolean;
}

/** Every command line of a guide, once, without comments. */
export function commandLines(guide: string): CommandLine[] {
  const text = readFileSync(new URL(guide, root), 'utf8');
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```/gms)].flatMap(([, kind, block]) => {
    const lines = block!.split('\n').map((line) => line.replace(/ +#.*$/, '').trim());
    if (kind === 'sh') return lines.filter((line) => line !== '' && !line.startsWith('#'));
    if (kind === 'console') {
      return lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
    }
    return kind === '' ? lines.filter((line) => program.test(line)) : [];
  });
  const prose = [...text.replace(/^```.*?^```/gms, '').matchAll(/`([^`\n]+)`/g)]
    .map(([, code]) => code!)
    .filter((code) => program.test(code) && !mention.test(code))
    .filter((code) => !/\b[A-Z]{3,}\b(?!=)|…/.test(code));
  const found = [
    ...blocks.map((line) => ({ guide, line, inBlock: true })),
    ...prose.map((line) => ({ guide, line, inBlock: false })),
  ];
  return found.filter(({ line }, at) => found.findIndex((one) => one.line === line) === at);
}
