import type { INotebookContent } from '@jupyterlab/nbformat';

import type { IParameter } from '../../model/jobDraft';

/** `lr = 0.1`, `lr: float = 0.1  # a comment`, on one line. */
const ASSIGNMENT = /^([A-Za-z_]\w*)\s*(?::[^=]+)?=\s*([^=\s].*)$/;

/** The variables set in the notebook's cell with the tag `parameters`, as in papermill. */
export function parametersOf({ cells }: INotebookContent): IParameter[] {
  const cell = cells.find(({ metadata }) => {
    const { tags } = metadata as { tags?: unknown };
    return Array.isArray(tags) && tags.includes('parameters');
  });
  if (!cell) {
    return [];
  }
  const { source } = cell;
  const text = Array.isArray(source) ? source.join('') : source;
  return text.split('\n').flatMap(line => {
    const match = ASSIGNMENT.exec(line);
    const values = match && withoutComment(match[2]);
    // A value on several lines stays as in the notebook.
    return match && values && isWhole(values)
      ? [{ name: match[1], values }]
      : [];
  });
}

function withoutComment(text: string): string {
  const match = /^((?:[^#'"]|'[^']*'|"[^"]*")*?)\s*(?:#.*)?$/.exec(text);
  return match?.[1] ?? text;
}

function isWhole(value: string): boolean {
  const count = (marks: RegExp) => value.match(marks)?.length ?? 0;
  return (
    count(/[[({]/g) === count(/[\])}]/g) && !/(\\|'''|""")\s*$/.test(value)
  );
}
