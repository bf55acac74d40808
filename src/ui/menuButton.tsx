import { ellipsesIcon } from '@jupyterlab/ui-components';
import React from 'react';

interface IMenuButtonProps {
  label: string;
  open: (button: HTMLElement) => void;
}

/**
 * Three dots that open a menu.
 */
export function MenuButton({ label, open }: IMenuButtonProps): JSX.Element {
  return (
    <button
      type="button"
      className="jp-dist-MenuButton"
      aria-haspopup="menu"
      aria-label={label}
      title={label}
      onClick={event => open(event.currentTarget)}
    >
      <ellipsesIcon.react tag="span" />
    </button>
  );
}
