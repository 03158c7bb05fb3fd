// Runs in a browser, in the page that a test looks at.

/** Words that a reader does not see whole: beyond their picture, or beyond a box that hides what does not fit. */
function cutTexts() {
  const beyond = (inner, outer) =>
    inner.left < outer.left - 1 ||
    inner.right > outer.right + 1 ||
    inner.top < outer.top - 1 ||
    inner.bottom > outer.bottom + 1;
  const cut = [];
  for (const text of document.querySelectorAll('svg text')) {
    const picture = text.closest('svg');
    const box = text.getBoundingClientRect();
    if (picture === null || box.width === 0) continue;
    if (beyond(box, picture.getBoundingClientRect())) cut.push(text.textContent);
  }
  for (const element of document.querySelectorAll('body *:not(svg *)')) {
    const { overflowX } = getComputedStyle(element);
    if (element.clientWidth === 0 || overflowX === 'auto') continue;
    if (element.scrollWidth > element.clientWidth + 1) cut.push(element.outerHTML.slice(0, 80));
  }
  if (document.documentElement.scrollWidth > innerWidth)
    cut.push('the page is wider than the window');
  return cut;
}

/** Labels of charts that lie on one another cannot be read either. */
function overlappingLabels() {
  const found = [];
  for (const axis of document.querySelectorAll('svg .role-axis-label')) {
    const labels = [...axis.querySelectorAll('text')].map((text) => ({
      text: text.textContent,
      box: text.getBoundingClientRect(),
      shown: getComputedStyle(text).opacity !== '0' && text.getAttribute('opacity') !== '0',
    }));
    const seen = labels.filter(({ box, shown }) => shown && box.width > 0);
    seen.forEach((one, index) => {
      const next = seen[index + 1];
      if (next === undefined) return;
      const apart =
        one.box.right <= next.box.left + 0.5 ||
        next.box.right <= one.box.left + 0.5 ||
        one.box.bottom <= next.box.top + 2 ||
        next.box.bottom <= one.box.top + 2;
      if (!apart) found.push(`${one.text} and ${next.text}`);
    });
  }
  return found;
}

/** Of the labels of an axis, and of the page's words. */
function colours() {
  const label = document.querySelector('svg .role-axis-label text');
  return [getComputedStyle(label).fill, getComputedStyle(document.body).color];
}

/** Rows of tables that are not shown. */
function hiddenRows() {
  return [...document.querySelectorAll('tr')].filter((row) => !row.checkVisibility()).length;
}

/** Figures that a line's end parts from their unit. */
function brokenFigures() {
  return [...document.querySelectorAll('.figure')]
    .filter((figure) => figure.getClientRects().length > 1)
    .map((figure) => figure.textContent);
}

globalThis.pageChecks = { brokenFigures, cutTexts, overlappingLabels, colours, hiddenRows };
