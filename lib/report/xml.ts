// What is used of the library that writes XML: a file of its own in dist/.
export { create } from 'xmlbuilder2';
