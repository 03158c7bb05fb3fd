// What the guides for moving show: calls and commands in the middle column of their tables, and whole programs.
import { readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);

/** A guide for those who come from another library. */
export interface MovingGuide {
  /** What the calls of the tables stand in; none where the tables name commands alone. */
  readonly beginning: string | undefined;
  /** Of the middle columns, in their order. */
  readonly calls: readonly string[];
  /** Options of a command, of the middle columns. */
  readonly flags: readonly string[];
  /** Collectives of that command, by their names. */
  readonly collectives: readonly string[];
  readonly scripts: readonly Script[];
  /** Rows whose middle column shows neither code nor a dash. */
  readonly bareRows: readonly string[];
}

/** A program with the line that runs it and what it prints. */
export interface Script {
  readonly text: string;
  readonly command: string;
  readonly printed: readonly string[];
}

const command = /^(?:[A-Z_]+=\S+ )*(?:npx|gradlink|node|npm|mpirun) /;

export function movingGuide(path: string): MovingGuide {
  const text = readFileSync(new URL(path, root), 'utf8');
  const blocks = [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, block]) => block!);
  const scripts = blocks.filter((block) => block.startsWith('// Run: ')).map(scriptOf);
  const rows = tableRows(text);
  const codes = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, code]) => code!));
  const flags = codes.filter((code) => code.startsWith('-'));
  const collectives = codes.filter((code) => /^[a-z_]+$/.test(code));
  const calls = codes.filter((code) => /[.(]/.test(code) && !command.test(code));
  return {
    beginning: blocks.find((block) => !block.startsWith('// Run: ')),
    calls,
    flags,
    collectives,
    scripts,
    bareRows: rows.filter((row) => !row.includes('`') && !row.trim().startsWith('–')),
  };
}

/** The middle cells of tables whose middle column is headed gradlink. */
function tableRows(text: string): string[] {
  let isOurs = false;
  return text.split('\n').flatMap((line) => {
    if (!line.startsWith('|')) {
      isOurs = false;
      return [];
    }
    const cell = line.split(' | ')[1]!.trim();
    if (cell === 'gradlink') isOurs = true;
    else if (isOurs && !/^-+$/.test(cell)) return [cell];
    return [];
  });
}

function scriptOf(text: string): Script {
  return {
    text,
    command: /^\/\/ Run: (.+)$/m.exec(text)![1]!,
    printed: [...text.matchAll(/^\/\/ Prints: (.+)$/gm)].map(([, line]) => line!),
  };
}

/** A program that makes the calls one after the other, each awaited, and says which failed. */
export function programOf(guide: MovingGuide): string {
  const made = guide.calls.map(
    (call) => `await shown(${JSON.stringify(call)}, async () => (${call}));`,
  );
  return `${guide.beginning ?? ''}
async function shown(call, run) {
  try {
    if ((await run()) === undefined && !call.includes('(')) throw new Error('it is undefined');
  } catch (error) {
    throw new Error(call, { cause: error });
  }
}
${made.join('\n')}
console.log('${String(guide.calls.length)} calls');
`;
}
