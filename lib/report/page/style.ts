// The style of the page: light and dark by the reader's system, one column on a phone, black on white in print.

/** Pictures have two widths; a page narrower than this shows the narrow ones. */
export const narrowBelow = 720;

export const style = `
:root { color-scheme: light dark; --back: #ffffff; --fore: #1d2430; --quiet: #5a6473; --line: #d9dee6; --panel: #f5f7fa;
  --good: #17734a; --fair: #8a5a00; --poor: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181f; --fore: #e4e8ee; --quiet: #a0a9b6; --line: #323a46; --panel: #1c222b;
    --good: #58c795; --fair: #e0b050; --poor: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 66rem; background: var(--back); color: var(--fore);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.25rem 0 .5rem; }
p { margin: .4rem 0; }
.quiet { color: var(--quiet); font-size: .9rem; }
.run { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; margin: .75rem 0; }
.run h3 { margin: 0 0 .35rem; font-size: 1rem; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .15rem 1rem; margin: 0; font-size: .92rem; }
dt { color: var(--quiet); }
dd { margin: 0; min-width: 0; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
ul { padding-left: 1.2rem; margin: .4rem 0; }
li { margin: .2rem 0; }
.good { color: var(--good); } .fair { color: var(--fair); } .poor, .error { color: var(--poor); }
.level { font-weight: 600; }
figure { margin: .75rem 0; }
figure svg { display: block; max-width: 100%; height: auto; }
figure .narrow { display: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; overflow-wrap: normal; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--quiet); font-weight: 600; }
th button { all: unset; cursor: pointer; } th button:focus-visible { outline: 2px solid currentColor; }
th[aria-sort=ascending] button::after { content: " ↑"; } th[aria-sort=descending] button::after { content: " ↓"; }
td:not(.level) { white-space: nowrap; }
#answer table { font-size: 1rem; } #answer th, #answer td { padding: .3rem .9rem .3rem 0; white-space: normal; }
td.level { max-width: 30rem; }
td.waived, td.error { min-width: 11rem; } .figure { white-space: nowrap; }
.right { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; color: var(--quiet); font-size: .9rem; }
@media (max-width: ${String(narrowBelow - 1)}px) {
  body { padding: 1rem .75rem 2rem; }
  figure .wide { display: none; } figure .narrow { display: block; }
  #answer table { font-size: .85rem; } #answer th, #answer td { padding-right: .5rem; }
  #answer td:first-child { overflow-wrap: break-word; }
  dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; } }
@media print {
  :root { color-scheme: light; --back: #ffffff; --fore: #000000; --quiet: #444444; --line: #bbbbbb; --panel: #ffffff;
    --good: #0a5c38; --fair: #6b4500; --poor: #9b1c15; }
  body { max-width: none; padding: 0; font-size: 11pt; }
  figure .wide { display: block; } figure .narrow { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .screen { display: none; } .scroll { overflow: visible; } table { font-size: 7pt; }
  th, td, .right { padding: .1rem .25rem; } td:not(.right) { white-space: normal; overflow-wrap: break-word; }
  td.waived, td.error { min-width: 8rem; }
  @page { margin: 14mm; }
  figure, tr, thead, .run { break-inside: avoid; } h2, h3 { break-after: avoid; } }
`.trim();
