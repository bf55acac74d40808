import { Button, ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { trans } from '../../model/trans';
import type { LiveNotebook } from './liveNotebook';

/**
 * Says above the notebook of a job that it cannot be changed, and what can be done at its end.
 */
export class NotebookHead extends ReactWidget {
  constructor(
    private readonly _job: string,
    private readonly _open: () => void
  ) {
    super();
    this.addClass('jp-dist-NotebookHead');
  }

  tell(state: LiveNotebook.State): void {
    if (state !== this._state) {
      this._state = state;
      this.update();
    }
  }

  protected render(): JSX.Element {
    const [job, state] = [this._job, this._state];
    const words = {
      missing: trans.__('Job %1 has not written its notebook yet.', job),
      running: trans.__('Read-only: job %1 is writing this notebook.', job),
      ended: trans.__('Read-only: job %1 has ended.', job)
    };
    return (
      <>
        <p role="status">{words[state]}</p>
        {state === 'ended' && (
          <Button small onClick={this._open}>
            {trans.__('Open as document')}
          </Button>
        )}
      </>
    );
  }

  private _state: LiveNotebook.State = 'missing';
}
