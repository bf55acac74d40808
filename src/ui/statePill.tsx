import React from 'react';

interface IStatePillProps {
  kind: 'ok' | 'wait' | 'error';
  label: string;
}

/**
 * The state in a word, announced when it changes.
 */
export function StatePill({ kind, label }: IStatePillProps): JSX.Element {
  return (
    <span className={`jp-dist-StatePill jp-mod-${kind}`} role="status">
      {label}
    </span>
  );
}
