import { Notification } from '@jupyterlab/apputils';

import { showErrors } from '../panel/plugin';
import { emitChanged, makeModel } from './samples';

it('tells once of each error that cannot be seen, and leaves the sidebar as it is', () => {
  const model = makeModel();
  const panel = { isVisible: false };
  const open = jest.fn();
  showErrors(model, panel, open);
  const fail = (error: typeof model.error) => {
    Object.assign(model, { error });
    emitChanged(model);
  };
  const told = () => Notification.manager.notifications;
  const full = { code: 'full', message: 'No GPU is free.', hint: 'Stop one.' };
  fail(null);
  expect(told()).toHaveLength(0);
  fail(full);
  fail(full);
  fail(null);
  fail(full);
  expect(told().map(({ message }) => message)).toEqual([
    'No GPU is free. Stop one.'
  ]);
  expect(open).not.toHaveBeenCalled();
  told()[0].options.actions?.[0].callback({} as MouseEvent);
  expect(open).toHaveBeenCalled();
  panel.isVisible = true;
  fail({ ...full });
  expect(told()).toHaveLength(1);
});
