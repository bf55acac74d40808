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

/** Have the browser save a file. */
export function download(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download has begun by then, and keeps what it needs.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
