// What the program says: the texts in lib/, whole sentences of them, by the rules of the prose that a message can break.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import ts from 'typescript';

import { checks } from './prose-rules.mjs';

const kinds = [checks.turns, checks['clause-subject']];

/** A text's words; what is put in when it is said stands as a name. */
function textOf(node) {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => `NAME${literal.text}`).join('');
}

function sentencesOf(text) {
  return text.includes(' ') ? text.split(/(?<=[.!?])\s+|\n+/) : [];
}

/** Findings of one file, as `FILE:LINE: …`. */
export function messageFindings(file, source) {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest);
  const found = [];
  const visit = (node) => {
    const text = textOf(node);
    for (const sentence of text === undefined ? [] : sentencesOf(text)) {
      for (const check of kinds) {
        const wrong = check(sentence.trim());
        if (wrong === undefined) continue;
        const { line } = tree.getLineAndCharacterOfPosition(node.getStart(tree));
        found.push(`${file}:${String(line + 1)}: ${wrong} [message]`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

/** Findings of all of lib/. */
export function allMessageFindings(root) {
  return readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) =>
      messageFindings(`lib/${name}`, readFileSync(join(root, 'lib', name), 'utf8')),
    );
}
