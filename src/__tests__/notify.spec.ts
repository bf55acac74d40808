import { Notification } from '@jupyterlab/apputils';

import { notify } from '../ui/notify';
import { dialog, dialogSays } from './samples';

it('shows by a button what JupyterLab would cut off', async () => {
  const open = { label: 'Open', callback: () => {} };
  const emit = (words: string) => {
    notify(words, 'info', { actions: [open] });
    const { options } = Notification.manager.notifications[0];
    return options.actions ?? [];
  };
  expect(emit('a'.repeat(140))).toEqual([open]);
  const words = `${'a'.repeat(140)} to the end`;
  const [show, ...others] = emit(words);
  expect([show.label, others]).toEqual(['Show', [open]]);
  show.callback({} as MouseEvent);
  await dialogSays(words);
  dialog()?.querySelector('button')?.click();
  Notification.dismiss();
});
