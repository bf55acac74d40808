import { Button } from '@jupyterlab/ui-components';
import React from 'react';

import { trans } from '../model/trans';
import { CopyButton, Note } from './controls';

interface IErrorBoundaryProps {
  children: React.ReactNode;
  /** Without room for a sentence nothing is shown. */
  isSilent?: boolean;
}

interface IErrorBoundaryState {
  error: Error | null;
}

/** Keeps a mistake of ours to the part where it happens, and says it there. */
export class ErrorBoundary extends React.Component<
  IErrorBoundaryProps,
  IErrorBoundaryState
> {
  static getDerivedStateFromError(error: Error): IErrorBoundaryState {
    return { error };
  }

  state: IErrorBoundaryState = { error: null };

  render(): React.ReactNode {
    const { error } = this.state;
    const { children, isSilent } = this.props;
    if (error === null) {
      return children;
    }
    return isSilent ? null : (
      <div className="jp-dist-Body">
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
      </div>
    );
  }
}
