import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { trans } from '../model/trans';
import { CopyButton, Note } from './controls';

interface IErrorBoundaryState {
  error: Error | null;
}

/** Shows an error of ours in the part where it happens; the other parts stay. */
export class ErrorBoundary extends React.Component<
  { children: React.ReactNode },
  IErrorBoundaryState
> {
  static getDerivedStateFromError(error: Error): IErrorBoundaryState {
    return { error };
  }

  state: IErrorBoundaryState = { error: null };

  render(): React.ReactNode {
    const { error } = this.state;
    return error === null ? (
      this.props.children
    ) : (
      <Note kind="error">
        <p className="jp-dist-error">
          {trans.__('This part cannot be shown: %1', error.message)}
        </p>
        <div className="jp-dist-Actions">
          <CopyButton text={error.stack ?? error.message} />
          <Button small onClick={() => this.setState({ error: null })}>
            {trans.__('Try again')}
          </Button>
        </div>
      </Note>
    );
  }
}
