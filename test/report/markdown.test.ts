import { describe, expect, it } from 'vitest';

import { code, markdownTable, plain } from '../../lib/report/markdown.js';

describe('a text of others in Markdown', () => {
  it.each([
    ['![i](http://evil/x.png)', '!\\[i\\](http://evil/x.png)'],
    ['<img src=x> &lt;', '\\<img src=x> \\&lt;'],
    ['a\r\n\n# b', 'a \\# b'],
    ['*a* _b_ `c` \\|', '\\*a\\* \\_b\\_ \\`c\\` \\\\\\|'],
    ['all_reduce: S * 4 & more', 'all_reduce: S * 4 & more'],
  ])('%j is %j as words', (text, shown) => {
    expect(plain(text)).toBe(shown);
  });

  it.each([
    ['a b', '`a b`'],
    ['a ``b` c\n<img>', '```a ``b` c <img>```'],
    ['`a', '`` `a ``'],
    [' a ', '`  a  `'],
  ])('%j is %j as code', (text, shown) => {
    expect(code(text)).toBe(shown);
  });

  it('has no cell of its own in a table', () => {
    const column = { title: 'a|b', align: 'left' } as const;
    expect(markdownTable([column], [['<b>|\n| c']])).toEqual([
      '| a\\|b |',
      '| --- |',
      '| \\<b>\\| \\| c |',
    ]);
  });
});
