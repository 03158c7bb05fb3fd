// The page's only script sorts a table when a column title is clicked. It is allowed by its hash, so that no other
// runs.
import { createHash } from 'node:crypto';

export const sortScript = `
for (const table of document.querySelectorAll('table.sorted')) {
  const body = table.tBodies[0];
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    const button = document.createElement('button');
    button.textContent = title.textContent;
    title.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = title.getAttribute('aria-sort') === 'ascending';
      for (const one of titles) one.removeAttribute('aria-sort');
      title.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = (a, b) => key(a).localeCompare(key(b), 'en', { numeric: true });
      const number = (row) => Number(row.cells[column].dataset.value);
      const order = (a, b) => {
        const apart = number(a) - number(b);
        return Number.isFinite(apart) ? apart : compare(a, b);
      };
      body.append(...[...body.rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
    });
  });
}
`;

/** The content security policy allows only this script. The first two directives have no default. */
export const policy = `base-uri 'none'; form-action 'none'; default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-${createHash('sha256').update(sortScript).digest('base64')}'`;
