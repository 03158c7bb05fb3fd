/** Reports of one run or several for people: a page, pictures, Markdown. */
export { toPage } from './html.js';
export { runsToMarkdown } from './markdown.js';
export { toSvg } from './svg.js';
