import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';

/** The path of the one file that is selected in the file browser, if it is accepted. */
export function selectedFile(
  browsers: IFileBrowserFactory | null,
  accept: (file: Contents.IModel) => boolean
): string | null {
  const browser = browsers?.tracker.currentWidget;
  const [item, ...others] = [...(browser?.selectedItems() ?? [])];
  return item && !others.length && accept(item) ? item.path : null;
}
