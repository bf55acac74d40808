import js from '@eslint/js';
import prettierRecommended from 'eslint-plugin-prettier/recommended';
import reactHooks from 'eslint-plugin-react-hooks';
import { defineConfig } from 'eslint/config';
import importPlugin from 'eslint-plugin-import';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** By room of the front end: the rooms that it may import from, beside itself. */
const ROOMS = {
  model: [],
  words: ['model'],
  ui: ['model', 'words'],
  panel: ['model', 'words', 'ui'],
  notebook: ['model', 'words', 'ui'],
  outputs: ['model', 'words', 'ui'],
  timeline: ['model', 'words', 'ui'],
  profile: ['model', 'words', 'ui'],
  queue: ['model', 'words', 'ui']
};

export default defineConfig([
  js.configs.recommended,
  {
    files: ['{src,ui-tests}/**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommended],
    languageOptions: {
      globals: globals.browser,
      parserOptions: {
        project: ['tsconfig.test.json', 'ui-tests/tsconfig.json']
      }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          // The browser's own may be extended.
          custom: { regex: '^(I[A-Z]|Window$)', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      // A token and its interface share a name, and command ids live in a namespace.
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/no-redeclare': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }
      ],
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'no-console': 'error',
      'prefer-arrow-callback': 'error'
    }
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [reactHooks.configs.flat.recommended]
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    ignores: ['src/__tests__/**'],
    plugins: { import: importPlugin },
    settings: {
      'import/parsers': { '@typescript-eslint/parser': ['.ts', '.tsx'] },
      'import/resolver': { node: { extensions: ['.ts', '.tsx'] } }
    },
    rules: {
      'import/no-cycle': ['error', { ignoreExternal: true }],
      'import/no-restricted-paths': [
        'error',
        {
          zones: Object.entries(ROOMS).map(([room, others]) => ({
            target: `./src/${room}`,
            from: './src',
            except: [room, ...others].map(name => `./${name}`),
            message: `${room}/ may import from ${others.join(', ') || 'itself'} only.`
          }))
        }
      ]
    }
  },
  {
    files: ['src/model/**', 'src/words/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: ['react', 'react-dom'].map(name => ({ name })) }
      ]
    }
  },
  {
    // They print what they measure.
    files: ['ui-tests/benchmarks/*.ts'],
    rules: { 'no-console': 'off' }
  },
  prettierRecommended
]);
