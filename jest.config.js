const jestJupyterLab = require('@jupyterlab/testutils/lib/jest-config');

// Packages that come as ES modules only, which Jest has to be told to transform.
const esModules = [
  '@codemirror',
  '@jupyter/',
  '@jupyterlab/',
  '@microsoft',
  'exenv-es6',
  'lib0',
  'nanoid',
  'vscode-ws-jsonrpc',
  'y-protocols',
  'yjs'
].join('|');

const shared = jestJupyterLab(__dirname);

module.exports = {
  ...shared,
  reporters: ['default'],
  // Above the limit of the waits in the tests, which say what they waited for.
  testTimeout: 90_000,
  testRegex: 'src/__tests__/.*\\.spec\\.tsx?$',
  transform: {
    ...shared.transform,
    // `jlpm types:check` checks the types of all tests; each worker here would do so once more.
    '^.+\\.tsx?$': [
      'ts-jest/legacy',
      { tsconfig: './tsconfig.test.json', isolatedModules: true }
    ]
  },
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
