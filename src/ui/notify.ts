import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';

import { trans } from '../model/trans';

/** Characters of a notification that JupyterLab shows. */
const SHOWN = 140;

/** Emit a notification; a button shows all of what is too long for one. */
export function notify(
  words: string,
  type: Notification.TypeOptions,
  { actions = [], ...options }: Omit<Notification.IOptions<never>, 'type'>
): void {
  const show = {
    label: trans.__('Show'),
    callback: () =>
      void showDialog({
        title: trans.__('Notification'),
        body: words,
        buttons: [Dialog.okButton({ label: trans.__('Close') })]
      })
  };
  Notification.emit(words, type, {
    ...options,
    actions: words.length > SHOWN ? [show, ...actions] : actions
  });
}
