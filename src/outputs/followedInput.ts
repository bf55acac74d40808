import type { CodeCell, ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Stdin } from '@jupyterlab/outputarea';
import { Panel, type PanelLayout } from '@lumino/widgets';

export interface IQuestion {
  prompt: string;
  password: boolean;
}

/** What a cell asks its user, as JupyterLab shows it in the page that runs the cell. */
export class FollowedInput {
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _code: ICodeCellModel,
    private readonly _reply: (value: string) => void
  ) {}

  /** Ask, or no more. */
  show(question: IQuestion | null): void {
    this._asked = question;
    this._input?.dispose();
    this._input = null;
    const cell = this._panel.content.widgets.find(
      ({ model }) => model === this._code
    ) as CodeCell | undefined;
    if (question && cell) {
      void cell.ready.then(() => {
        if (this._asked === question && !cell.isDisposed) {
          this._ask(cell, question);
        }
      });
    }
  }

  private _ask({ outputArea }: CodeCell, question: IQuestion): void {
    const { contentFactory } = outputArea;
    const future = {
      sendInputReply: ({ value }: { value: string }) => this._reply(value)
    };
    const prompt = contentFactory.createOutputPrompt();
    prompt.addClass('jp-OutputArea-prompt');
    const input = contentFactory.createStdin({
      ...question,
      parent_header: {} as Stdin.IOptions['parent_header'],
      future: future as unknown as Stdin.IOptions['future']
    });
    input.addClass('jp-OutputArea-output');
    this._input = new Panel();
    this._input.addClass('jp-OutputArea-child');
    this._input.addClass('jp-OutputArea-stdin-item');
    this._input.addWidget(prompt);
    this._input.addWidget(input);
    (outputArea.layout as PanelLayout).addWidget(this._input);
  }

  private _asked: IQuestion | null = null;
  private _input: Panel | null = null;
}
