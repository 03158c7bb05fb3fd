// Reading and writing files, for all layers.
export { fileFailure, hasCode } from './failures.js';
export { makeFolders } from './folders.js';
export { checkFolder, isOwnFolder, makeOwnFolder, openOwnFile, ownEntry, ownFile } from './own.js';
export { partialName, removePartials } from './partial.js';
export { openRegular, readRegular, statusOf, type OpenFile } from './read.js';
export { targetOf } from './target.js';
export { syncFolder, writeFileAtomic, writeOwnFile, type Pieces } from './write.js';
