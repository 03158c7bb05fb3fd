// The licence texts of the packages that are bundled into dist/, as one file.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const named = /^(licen[cs]e|copying|notice)/i;

/** The folder of the package that a file belongs to. */
function packageOf(file) {
  // Greedy: a package may lie in another's node_modules.
  const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file);
  return folder;
}

/**
 * @param {string} root the checkout
 * @param {readonly string[]} inputs what esbuild's metafiles list, relative to it
 * @throws where a bundled package brings no licence text: such a one cannot be shipped
 */
export function licenses(root, inputs) {
  const bundled = inputs.filter((file) => file.includes('node_modules/'));
  const folders = [...new Set(bundled.map((file) => packageOf(join(root, file))))];
  const packages = folders.map((folder) => {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const texts = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() && named.test(entry.name))
      .map((entry) => readFileSync(join(folder, entry.name), 'utf8').trim());
    return { ...manifest, texts };
  });
  const sections = packages.map(({ name, version, license, repository, texts }) => {
    // A repository of many packages (Vega's) puts its one licence into only some of them.
    const alike = packages.find(
      (other) =>
        other.texts.length > 0 &&
        other.license === license &&
        repository !== undefined &&
        JSON.stringify(other.repository) === JSON.stringify(repository),
    );
    const own = texts.length > 0 ? texts : alike?.texts;
    if (own === undefined) {
      throw new Error(`${name}@${version} is bundled, but brings no licence text.`);
    }
    return { title: `${name} ${version} (${license})`, text: own.join('\n\n') };
  });
  sections.sort((a, b) => a.title.localeCompare(b.title, 'en'));
  const line = '-'.repeat(80);
  // Vega's packages have one text.
  const titles = new Map();
  for (const { title, text } of sections) titles.set(text, [...(titles.get(text) ?? []), title]);
  return [
    'Parts of the files in this folder come from these packages, under the licences below.\n',
    ...[...titles].map(([text, of]) => `${line}\n${of.join('\n')}\n${line}\n\n${text}\n`),
  ].join('\n');
}
