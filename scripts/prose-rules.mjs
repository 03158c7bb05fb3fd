// The rules of our prose, for @textlint/kernel. Each is a function of one sentence that says what is wrong with it.
import { splitAST } from 'sentence-splitter';

/** More than this is two thoughts. */
const mostWords = 30;

/** A clause in the place of the subject: "What it throws is …", "Who waits for … waits longer". */
const clauseSubject = /^(What|Who|Whoever|Whom|Whose|With whom|Of which|How much|How often)\b/;

/** Turns of phrase that stop a reader, with plainer ones. */
const turns = [
  [
    /\b(needs|does|has|takes|knows) it not\b/i,
    'put "not" after a helping verb: "does not need it"',
  ],
  [/\bthat there (is|are) not\b/i, 'say "unknown" or "missing"'],
  [/\bof which nobody\b/i, 'make two sentences'],
  [/\bso (many|much) (?!as\b|that\b)/i, 'name the number, or say "this many"'],
  [/\bthat is none\b|\bis none of\b/i, 'say "is not a …"'],
  [/\bfor ever\b/i, 'say "forever"'],
  [
    /\bleave (?:\S+ )?away\b|\bgot (some|both)\b|\bis none,/i,
    'say the rule: "give only one of them"',
  ],
  [/\bno other than\b|\bwhich is to say\b|\bas it were\b/i, 'leave it out'],
  [/\bnotwithstanding\b|\bthereof\b|\bwherein\b|\bwhereof\b|\bheretofore\b/i, 'use a plain word'],
];

/** The words of a sentence; a piece of code or a link counts as it reads. */
function plain(source) {
  return source
    .replace(/`[^`]*`/g, 'CODE')
    .replace(/!?\[([^[\]]*)\]\([^()]*\)/g, '$1')
    .replace(/<[^<>]+>/g, ' ')
    .replace(/[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function wordsOf(sentence) {
  // A list behind a colon is read by itself, and brackets are skipped.
  return sentence
    .replace(/\([^()]*\)/g, '')
    .split(':')
    .map((part) => part.split(' ').filter((word) => /\w/.test(word)).length)
    .reduce((most, count) => Math.max(most, count), 0);
}

/** By name, what each says against a sentence; undefined where it is well. */
export const checks = {
  'sentence-length': (sentence) => {
    const words = wordsOf(sentence);
    if (words <= mostWords) return undefined;
    return `${String(words)} words without a full stop, more than ${String(mostWords)}: make two sentences`;
  },
  'clause-subject': (sentence) => {
    const found = clauseSubject.exec(sentence);
    if (found === null || sentence.endsWith('?')) return undefined;
    return `begins with the clause "${found[0]} …": begin with the thing itself`;
  },
  turns: (sentence) => {
    const [turn, advice] = turns.find(([one]) => one.test(sentence)) ?? [];
    return turn === undefined ? undefined : `"${turn.exec(sentence)[0]}": ${advice}`;
  },
};

/** The checks as rules of textlint. */
export const rules = Object.entries(checks).map(([ruleId, check]) => ({
  ruleId,
  rule: ({ Syntax, RuleError, getSource, report }) => ({
    [Syntax.Paragraph](paragraph) {
      for (const sentence of splitAST(paragraph).children) {
        if (sentence.type !== 'Sentence') continue;
        const wrong = check(plain(getSource(sentence)));
        if (wrong !== undefined) report(sentence, new RuleError(wrong));
      }
    },
  }),
}));
