import { Clipboard } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useState } from 'react';

interface IButtonProps {
  children: React.ReactNode;
  onClick?: () => void;
  isPrimary?: boolean;
  isDisabled?: boolean;
  type?: 'button' | 'submit';
  title?: string;
}

export function Button(props: IButtonProps): JSX.Element {
  return (
    <button
      className={
        props.isPrimary ? 'jp-dist-Button jp-mod-primary' : 'jp-dist-Button'
      }
      type={props.type ?? 'button'}
      disabled={props.isDisabled}
      title={props.title}
      onClick={props.onClick}
    >
      {props.children}
    </button>
  );
}

interface ICopyButtonProps {
  text: string;
  trans: TranslationBundle;
}

export function CopyButton({ text, trans }: ICopyButtonProps): JSX.Element {
  const [isCopied, setIsCopied] = useState(false);
  return (
    <Button
      onClick={() => {
        Clipboard.copyToSystem(text);
        setIsCopied(true);
      }}
    >
      {isCopied ? trans.__('Copied') : trans.__('Copy')}
    </Button>
  );
}

interface INoteProps {
  children: React.ReactNode;
  kind?: 'info' | 'warn' | 'error';
}

const ROLES = { info: 'note', warn: 'status', error: 'alert' };

/**
 * One sentence the user should read; an error is announced at once.
 */
export function Note({ children, kind = 'info' }: INoteProps): JSX.Element {
  return (
    <div className={`jp-dist-Note jp-mod-${kind}`} role={ROLES[kind]}>
      {children}
    </div>
  );
}
