import { defineConfig } from 'eslint/config';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/** What is spread where it is written only pleases the formatter: it costs an object and hides misspelt properties. */
const written = [
  {
    selector: 'ObjectExpression > SpreadElement > ObjectExpression',
    message: 'Write the properties themselves.',
  },
  {
    selector:
      ':matches(CallExpression, NewExpression) > SpreadElement > TSAsExpression > ArrayExpression',
    message: 'Write the arguments themselves.',
  },
];
/** Three words in a row, in what a matcher of these names is given. */
const sentence = '/[A-Za-z]{2,},? [A-Za-z]{2,},? [A-Za-z]/';
const matcher =
  'CallExpression[callee.property.name=/^(toThrow|toThrowError|toMatch|toContain|stringContaining|stringMatching)$/]';
const wording = ['Literal[raw=', 'TemplateLiteral > TemplateElement[value.raw='].map((literal) => ({
  selector: `${matcher} > ${literal}${sentence}]`,
  message:
    'Assert codes, fields, names and numbers: the wording of messages is for docs/troubleshooting.md and its test.',
}));

const matchesAnything = {
  selector:
    'CallExpression[callee.property.name=/^(toMatchObject|objectContaining)$/] Property > Literal[regex]',
  message: 'A regular expression matches anything here: write expect.stringMatching.',
};

export default defineConfig(
  { ignores: ['dist/', 'build/', 'build-*/', 'docs/api/', 'node_modules/', '.gpu/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      // environment['NAME']: an index signature, not a property that somebody declared.
      '@typescript-eslint/dot-notation': ['error', { allowIndexSignaturePropertyAccess: true }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      // Index access is already `T | undefined` (noUncheckedIndexedAccess); in a checked loop `!` says so.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // There are no enums; of classes the other finds only `any`, as its neighbours do. Both took a quarter of the time.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-restricted-syntax': ['error', ...written],
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  {
    // A program may print; a library may not.
    files: ['test/**/*.ts', 'lab/**/*.ts', '*.config.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['lib/**/*.ts'],
    // The second loads an optional peer, and no addon.
    ignores: ['lib/native/load.ts', 'lib/train/tfjs.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...written,
        {
          selector: "CallExpression[callee.name=/^mkdir/] Property[key.name='recursive']",
          message: 'Folders are made with makeFolders of lib/files: Node never returns on some.',
        },
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: ['bindings', 'node:module', 'module'].map((name) => ({
            name,
            message: 'Only lib/native/load.ts loads the addon.',
          })),
        },
      ],
    },
  },
  {
    // A full disk or a kill must leave what was there. What is compiled goes into a folder of its own first.
    files: ['lib/**/*.ts'],
    ignores: ['lib/files/**', 'lib/compile/addon.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: ['node:fs', 'node:fs/promises'].map((name) => ({
            name,
            importNames: ['writeFile', 'writeFileSync', 'appendFile', 'appendFileSync'],
            message: 'Files are written with writeFileAtomic of lib/files.',
          })),
        },
      ],
    },
  },
  {
    // Wrong arguments are what these tests hand over on purpose.
    files: ['test/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', ...written, ...wording, matchesAnything],
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    // Texts of others are matched: a time that grows faster than they do could be made to take hours.
    files: ['lib/**/*.ts', '{bench,lab}/**/*.js', 'scripts/**/*.mjs'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'certain' }],
      'regexp/no-super-linear-move': ['error', { report: 'certain' }],
    },
  },
  {
    files: ['**/*.js', '**/*.mjs'],
    extends: [tseslint.configs.recommended],
    rules: {
      'no-restricted-syntax': ['error', written[0]],
    },
  },
);
