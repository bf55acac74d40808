import type { INotebookContent } from '@jupyterlab/nbformat';

import { parametersOf } from '../queue/submit/notebookParameters';

function notebook(source: string | string[], tags = ['parameters']) {
  const cells = [
    { cell_type: 'code', source: 'seed = 7', metadata: {} },
    { cell_type: 'code', source, metadata: { tags } }
  ];
  return { cells } as unknown as INotebookContent;
}

describe('parametersOf', () => {
  it.each([
    ['lr = 0.1', [['lr', '0.1']]],
    ['lr: float = 0.1  # the rate', [['lr', '0.1']]],
    [`name = "a # b"  # named`, [['name', '"a # b"']]],
    [
      `sizes=[1, 2]\nflag = True`,
      [
        ['sizes', '[1, 2]'],
        ['flag', 'True']
      ]
    ],
    [`big = {\n  'a': 1,\n}\nx = 1`, [['x', '1']]],
    ['if x == 1:\n    y = 2\nprint(lr)\na.b = 3', []],
    [`text = '''\nabc'''`, []],
    ['lr == 0.1', []]
  ])('%j', (source, found) => {
    const expected = found.map(([name, values]) => ({ name, values }));
    expect(parametersOf(notebook(source))).toEqual(expected);
    const lines = source.split('\n').map(line => `${line}\n`);
    expect(parametersOf(notebook(lines))).toEqual(expected);
  });

  it('finds none without a cell that has the tag', () => {
    expect(parametersOf(notebook('lr = 1', ['other']))).toEqual([]);
  });
});
