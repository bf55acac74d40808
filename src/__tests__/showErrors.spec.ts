import type { Signal } from '@lumino/signaling';

import { showErrors } from '../panel/showErrors';
import { makeModel } from './samples';

it('opens the panel once for each error that cannot be seen', () => {
  const model = makeModel();
  const panel = { isVisible: false };
  const open = jest.fn();
  showErrors(model, panel, open);
  const fail = (error: typeof model.error) => {
    Object.assign(model, { error });
    (model.changed as Signal<typeof model, void>).emit();
  };
  const full = { code: 'full', message: 'No GPU is free.', hint: '' };
  fail(null);
  expect(open).not.toHaveBeenCalled();
  fail(full);
  fail(full);
  fail(null);
  fail(full);
  expect(open).toHaveBeenCalledTimes(1);
  panel.isVisible = true;
  fail({ ...full });
  expect(open).toHaveBeenCalledTimes(1);
});
