import { Clipboard } from '@jupyterlab/apputils';
import { Button, ellipsesIcon } from '@jupyterlab/ui-components';
import React, { forwardRef, useState } from 'react';

import type { IApiError } from '../model/contract';
import { trans } from '../model/trans';
import { below } from './menu';
import type { IMenuPlace } from './menu';

export function CopyButton({ text }: { text: string }): JSX.Element {
  const [isCopied, setIsCopied] = useState(false);
  return (
    <Button
      small
      onClick={() => {
        Clipboard.copyToSystem(text);
        setIsCopied(true);
      }}
    >
      {isCopied ? trans.__('Copied') : trans.__('Copy')}
    </Button>
  );
}

/** A button that looks like a link. */
export function Link({
  className = '',
  ...props
}: React.ButtonHTMLAttributes<HTMLButtonElement>): JSX.Element {
  const classes = `jp-dist-Link ${className}`.trim();
  return <button {...props} type="button" className={classes} />;
}

/** Shows the rest of a long list. */
export function ShowMore(props: {
  count: number;
  show: () => void;
}): JSX.Element | null {
  return props.count > 0 ? (
    <Link onClick={props.show}>{trans.__('Show %1 more', props.count)}</Link>
  ) : null;
}

/** A sentence from the server, with code in backquotes. */
export function Sentence({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text
        .split('`')
        .map((part, index) =>
          index % 2 ? <code key={index}>{part}</code> : part
        )}
    </>
  );
}

/** What is wrong, and what to do. */
export function ErrorText({ error }: { error: IWrong }): JSX.Element {
  return (
    <>
      <p className="jp-dist-error">{error.message}</p>
      {error.hint && <p>{error.hint}</p>}
    </>
  );
}

type IWrong = Pick<IApiError, 'message' | 'hint'>;

/** Why a section cannot be shown. */
export function ErrorWithRetry(props: {
  error: IWrong;
  retry: () => void;
}): JSX.Element {
  return (
    <div className="jp-dist-Reason" role="alert">
      <ErrorText error={props.error} />
      <div className="jp-dist-Actions">
        <Button small onClick={props.retry}>
          {trans.__('Check again')}
        </Button>
      </div>
    </div>
  );
}

interface INoteProps {
  children: React.ReactNode;
  kind?: 'info' | 'warn' | 'error';
}

const ROLES = { info: 'note', warn: 'status', error: 'alert' };

/** A short text for the user; an error is announced at once. */
export const Note = forwardRef<HTMLDivElement, INoteProps>(function Note(
  { children, kind = 'info' },
  ref
): JSX.Element {
  return (
    <div ref={ref} className={`jp-dist-Note jp-mod-${kind}`} role={ROLES[kind]}>
      {children}
    </div>
  );
});

/** The state in a word, announced when it changes. */
export function StatePill(props: {
  kind: 'ok' | 'wait' | 'error';
  label: string;
}): JSX.Element {
  return (
    <span className={`jp-dist-StatePill jp-mod-${props.kind}`} role="status">
      {props.label}
    </span>
  );
}

/** Three dots that open a menu. */
export function MenuButton(props: {
  label: string;
  open: (place: IMenuPlace) => void;
}): JSX.Element {
  const { label, open } = props;
  return (
    <button
      type="button"
      className="jp-dist-MenuButton"
      aria-haspopup="menu"
      aria-label={label}
      title={label}
      onClick={event => open(below(event.currentTarget))}
    >
      <ellipsesIcon.react tag="span" />
    </button>
  );
}

/** Focus the first enabled control of a kind, before the focused one disappears. */
export function focusFirst(
  container: HTMLElement | null,
  selector: 'button' | 'input'
): void {
  container?.querySelector<HTMLElement>(`${selector}:enabled`)?.focus();
}
