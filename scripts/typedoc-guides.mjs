// A plugin of typedoc: the guides get their titles, and their places in the navigation, and wide tables a box to scroll
// in. docs/README.md lists every guide under the heading of its kind, so that the files need no front matter, which
// GitHub would show.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { Converter, IntrinsicType, MarkdownEvent, PageEvent, ReflectionKind } from 'typedoc';

const docs = join(import.meta.dirname, '..', 'docs');
const contents = 'All guides';

/** What docs/README.md lists: each guide's path from docs/, its title, its kind. */
export function listedGuides() {
  return readFileSync(join(docs, 'README.md'), 'utf8')
    .split(/^## /m)
    .slice(1)
    .flatMap((part) => {
      const [kind] = part.split('\n', 1);
      return [...part.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, title, path]) => {
        return { path, title, kind };
      });
    });
}

export function load(app) {
  // typedoc knows a document by its path without the ending.
  const listed = new Map(listedGuides().map((one) => [basename(one.path, '.md'), one]));
  // On a phone a table is wider than the page, which is not to scroll sideways; the keyboard reaches what scrolls.
  app.renderer.on(MarkdownEvent.PARSE, (event) => {
    event.parsedText = event.parsedText.replaceAll(
      /<table>.*?<\/table>/gs,
      (table) => `<div class="scroll" tabindex="0" role="group" aria-label="table">${table}</div>`,
    );
  });
  // Who listens to the page goes to its main part at once.
  const roles = { 'col-content': 'main', 'page-menu': 'complementary' };
  app.renderer.on(PageEvent.END, (page) => {
    for (const [name, role] of Object.entries(roles)) {
      const begin = `<div class="${name}"`;
      page.contents = page.contents?.replace(begin, `${begin} role="${role}"`);
    }
  });
  // The schema is data: what its fields mean stands with the types that it describes.
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const schema = project
      .getReflectionsByKind(ReflectionKind.Variable)
      .find(({ name }) => name === 'reportSchema');
    project.removeTypeReflections(schema.type);
    schema.type = new IntrinsicType('object');
  });
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, document) => {
    const heading = /^# (.+)$/m.exec(document.content.map(({ text }) => text).join(''))?.[1];
    if (heading === contents) {
      document.name = contents;
      document.frontmatter.group = 'none';
      return;
    }
    const { title = heading, kind = 'Project' } = listed.get(basename(document.name)) ?? {};
    document.name = title ?? document.name;
    document.frontmatter.group = kind;
  });
}
