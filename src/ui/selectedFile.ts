import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';

/** The path of the one file that is selected in the file browser, if it is accepted. */
export function selectedFile(
  browsers: IFileBrowserFactory | null,
  accept: (path: string) => boolean
): string | null {
  const browser = browsers?.tracker.currentWidget;
  const [item, ...others] = [...(browser?.selectedItems() ?? [])];
  return item && !others.length && accept(item.path) ? item.path : null;
}
