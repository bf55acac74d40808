import js from '@eslint/js';
import prettierRecommended from 'eslint-plugin-prettier/recommended';
import reactHooks from 'eslint-plugin-react-hooks';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

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
    // They print what they measure.
    files: ['ui-tests/benchmarks/*.ts'],
    rules: { 'no-console': 'off' }
  },
  prettierRecommended
]);
