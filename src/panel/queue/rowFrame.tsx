import React from 'react';

import { trans } from '../../model/trans';
import { MenuButton } from '../../ui/controls';
import { below } from '../../ui/menu';
import type { IMenuPlace } from '../../ui/menu';
import type { DragProps } from './dragging';

interface IRowFrameProps {
  name: string;
  /** Beside the name. */
  place: string;
  /** What decides the colour of the state. */
  mood: 'run' | 'wait' | 'held' | 'good' | 'bad';
  /** What the short words mean. */
  title?: string;
  /** Null where nothing can be done. */
  openMenu: ((place: IMenuPlace) => void) | null;
  /** Of own jobs: whether it is one of several that are selected; else null. */
  isPicked: boolean | null;
  pick?: () => void;
  /** Show all about it. */
  open?: () => void;
  /** Where it can be dragged to another place. */
  drag?: DragProps;
  /** The state in words, and when. */
  children: React.ReactNode;
}

/** Two lines and a menu. */
export function RowFrame(props: IRowFrameProps): JSX.Element {
  const { name, place, mood, title, openMenu, isPicked, drag } = props;
  const classes = [
    'jp-dist-QueueRow',
    `jp-mod-${mood}`,
    openMenu ? '' : 'jp-mod-foreign',
    isPicked ? 'jp-mod-picked' : '',
    drag?.className
  ];
  return (
    <li
      {...drag}
      className={classes.filter(Boolean).join(' ')}
      aria-label={name}
      onContextMenu={event => {
        const owner = event.currentTarget.querySelector('button');
        if (openMenu && owner && !event.shiftKey) {
          event.preventDefault();
          event.stopPropagation();
          openMenu({ owner, x: event.clientX, y: event.clientY });
        }
      }}
    >
      <div className="jp-dist-QueueRow-head">
        {isPicked === null ? (
          <strong title={name}>{name}</strong>
        ) : (
          <button
            type="button"
            title={trans.__(
              '%1: click for details; Ctrl+click or Space to select several.',
              name
            )}
            aria-pressed={isPicked}
            onClick={event => {
              const { ctrlKey, metaKey, shiftKey } = event;
              (ctrlKey || metaKey || shiftKey ? props.pick : props.open)?.();
            }}
            onKeyUp={event => {
              if (event.key === ' ') {
                event.preventDefault();
                props.pick?.();
              }
            }}
          >
            {name}
          </button>
        )}
        <span className="jp-dist-quiet">{place}</span>
        {openMenu && (
          <MenuButton
            label={trans.__('Menu of %1', name)}
            open={button => openMenu(below(button))}
          />
        )}
      </div>
      <div className="jp-dist-QueueRow-state" title={title || undefined}>
        {props.children}
      </div>
    </li>
  );
}
