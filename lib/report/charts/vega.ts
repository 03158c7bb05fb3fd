// The used parts of Vega: a separate file in dist/, loaded with the first chart.
export { Error as errorLevel, logger, parse, View } from 'vega';
export { compile } from 'vega-lite';
