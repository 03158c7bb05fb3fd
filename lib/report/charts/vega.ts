// What is used of Vega: a file of its own in dist/, which is opened when the first chart is drawn.
export { Error as errorLevel, logger, parse, View } from 'vega';
export { compile } from 'vega-lite';
