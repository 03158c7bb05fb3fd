/**
 * The version of this package. A constant, and not read from package.json: a program that was bundled with gradlink in
 * it has no package.json of gradlink beside it. test/cli/main.test.ts holds the two equal.
 */
export const version = '0.2.0';
