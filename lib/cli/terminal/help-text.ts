// Help as wide as the terminal: commander's own part, and the texts and examples that commands add to it.
import { Help } from 'commander';

/** A column of descriptions that is narrower puts words one below the other: they go below their option instead. */
const narrowestColumn = 32;
const below = '      ';

/** Words in lines of a width; the lines after the first begin with `hang`. */
function lines(text: string, width: number, hang: string): string[] {
  const made: string[] = [];
  let line = '';
  for (const word of text.trim().split(/ +/)) {
    const start = made.length === 0 ? '' : hang;
    if (line !== '' && line.length + 1 + word.length > width) {
      made.push(line);
      line = hang + word;
    } else {
      line = line === '' ? start + word : `${line} ${word}`;
    }
  }
  return [...made, line];
}

/** An example: its command, which a shell takes as it stands, and below it what it is for. */
function example(command: string, purpose: string | undefined, width: number): string[] {
  const parts = lines(command, width - '  '.length - ' \\'.length, '    ').map((one) => `  ${one}`);
  const shown = parts.map((one, i) => (i < parts.length - 1 ? `${one} \\` : one));
  const why = purpose === undefined ? [] : lines(purpose, width - below.length, '');
  return [...shown, ...why.map((one) => below + one)];
}

/** A line that begins with spaces: an example, or two columns. */
function indented(line: string, width: number): string[] {
  if (line.length <= width) return [line];
  const [, command, purpose] = /^ *(\$ .*?\S)(?: {2,}(\S.*))?$/.exec(line) ?? [];
  if (command !== undefined) return example(command, purpose, width);
  const indent = /^ */.exec(line)![0];
  return lines(line, width - indent.length, '  ').map((one) => indent + one);
}

/** Text of a help in lines of a width. Paragraphs are filled anew, where one of their lines is too long. */
export function fitted(text: string, width: number): string {
  if (text.split('\n').every((line) => line.length <= width)) return text;
  const made: string[] = [];
  let paragraph: string[] = [];
  const flush = (): void => {
    const fits = paragraph.every((line) => line.length <= width);
    made.push(...(fits ? paragraph : lines(paragraph.join(' '), width, '')));
    paragraph = [];
  };
  for (const line of text.split('\n')) {
    if (/^\S/.test(line)) {
      paragraph.push(line);
      continue;
    }
    if (paragraph.length > 0) flush();
    made.push(...indented(line, width));
  }
  if (paragraph.length > 0) flush();
  return made.join('\n');
}

/** For `configureHelp`: on a narrow terminal the description of an option stands below it. */
export const helpLayout = {
  minWidthToWrap: narrowestColumn,
  formatItem(term: string, termWidth: number, description: string, helper: Help): string {
    const width = helper.helpWidth ?? Infinity;
    const beside = width - termWidth - '    '.length >= narrowestColumn;
    if (beside || description === '') {
      return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
    }
    const text = helper.boxWrap(description, Math.max(width - below.length, narrowestColumn));
    return `  ${term}\n${below}${text.replaceAll('\n', `\n${below}`)}`;
  },
};
