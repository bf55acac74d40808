import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

interface IModeButtonProps {
  end: () => void;
  trans: TranslationBundle;
}

/**
 * Only there while all cells run on ranks, as that changes what every cell means.
 */
export function ModeButton({ end, trans }: IModeButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className="jp-dist-ModeButton"
      aria-pressed
      title={trans.__(
        'Every cell runs on all ranks. Click to run cells in the notebook again.'
      )}
      onClick={end}
    >
      {trans.__('all cells on ranks')}
    </button>
  );
}
