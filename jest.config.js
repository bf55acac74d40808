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

module.exports = {
  ...jestJupyterLab(__dirname),
  reporters: ['default'],
  // Above the limit of the waits in the tests, which say what they waited for.
  testTimeout: 90_000,
  testRegex: 'src/__tests__/.*\\.spec\\.tsx?$',
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
