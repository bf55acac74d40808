import { Dialog } from '@jupyterlab/apputils';
import { Button, ReactWidget } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';

import { trans } from '../model/trans';
import { formatTime } from '../words/format';
import { textOf } from '../words/rankTexts';
import type { IBlock } from '../words/rankTexts';
import { CopyButton, ErrorText } from './controls';

type Load = () => Promise<IBlock[]>;

/** Show texts of the server in a dialog, with buttons to copy and refresh them. */
export async function showTexts(title: string, load: Load): Promise<void> {
  const body = ReactWidget.create(<Texts load={load} />);
  const dialog = new TextDialog({
    title,
    body,
    buttons: [Dialog.cancelButton({ label: trans.__('Close') })]
  });
  await dialog.launch();
}

/** A dialog in which Enter presses the focused button of the body instead of closing it. */
class TextDialog extends Dialog<unknown> {
  handleEvent(event: Event): void {
    const isOurs =
      event instanceof KeyboardEvent &&
      event.key === 'Enter' &&
      event.target instanceof HTMLElement &&
      event.target.closest('.jp-dist-Texts') !== null;
    if (!isOurs) {
      super.handleEvent(event);
    }
  }
}

interface ILoaded {
  /** How often it had been asked for. */
  round: number;
  blocks: IBlock[];
  /** Milliseconds. */
  time: number;
}

/** The texts; the old ones stay visible while new ones load. */
function Texts({ load }: { load: Load }): JSX.Element {
  const [round, setRound] = useState(0);
  const [loaded, setLoaded] = useState<ILoaded | null>(null);
  const isLoading = loaded?.round !== round;
  useEffect(() => {
    let isWanted = true;
    void load().then(blocks => {
      if (isWanted) {
        setLoaded({ round, blocks, time: Date.now() });
      }
    });
    return () => {
      isWanted = false;
    };
  }, [load, round]);
  return (
    <div className="jp-dist-Texts" aria-busy={isLoading}>
      <div className="jp-dist-Texts-bar">
        <span className="jp-dist-quiet" role="status">
          {isLoading
            ? trans.__('Loading…')
            : loaded && trans.__('As of %1', formatTime(loaded.time))}
        </span>
        <Button
          small
          // Not disabled: it would lose the focus, and the dialog the keys.
          aria-disabled={isLoading}
          onClick={() => !isLoading && setRound(round + 1)}
        >
          {trans.__('Refresh')}
        </Button>
        {loaded && (
          <CopyButton key={loaded.time} text={textOf(loaded.blocks)} />
        )}
      </div>
      {loaded?.blocks.map(block => (
        <Block key={block.heading} {...block} />
      ))}
    </div>
  );
}

function Block({ heading, text, error }: IBlock): JSX.Element {
  return (
    <section className="jp-dist-Texts-block" aria-label={heading || undefined}>
      {heading && <h3>{heading}</h3>}
      {error ? (
        <div role="alert">
          <ErrorText error={error} />
        </div>
      ) : (
        <pre className="jp-dist-Log" tabIndex={0}>
          {text}
        </pre>
      )}
    </section>
  );
}
