import type { ISessionContext } from '@jupyterlab/apputils';

import { isPython } from '../model/notebook';

const makeContext = (kernel: string, isReady = true) =>
  ({
    session: { kernel: { name: kernel } },
    specsManager: {
      specs: isReady
        ? {
            kernelspecs: {
              python3: { language: 'python' },
              torch: { language: 'Python' },
              ir: { language: 'R' },
              julia: { language: 'julia' }
            }
          }
        : null
    }
  }) as unknown as ISessionContext;

it.each([
  ['python3', true],
  ['torch', true],
  ['ir', false],
  ['julia', false],
  // A remote kernel may be listed nowhere.
  ['other', true]
])('ranks are offered for the kernel %s: %s', (kernel, expected) => {
  expect(isPython(makeContext(kernel))).toBe(expected);
});

it('ranks are offered before it is known what kernels there are', () => {
  expect(isPython(makeContext('ir', false))).toBe(true);
});
