/**
 * The version of this package. A constant, because a bundle has no package.json of gradlink beside it;
 * test/cli/main.test.ts keeps the two equal.
 */
export const version = '0.2.0';
