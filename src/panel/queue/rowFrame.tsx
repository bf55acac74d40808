import type { Menu } from '@lumino/widgets';
import React from 'react';

import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { MenuButton } from '../../ui/controls';
import { onContextMenu, openMenu } from '../../ui/menu';
import type { IMenuPlace } from '../../ui/menu';
import type { IPanelServices } from '../services';
import type { DragProps } from './dragging';
import type { ISelection } from './selection';

interface IRowFrameProps extends IPanelServices {
  name: string;
  /** Beside the name. */
  place: string;
  /** The colour of the state. */
  mood: 'run' | 'wait' | 'held' | 'good' | 'bad';
  /** Explains the state. */
  title?: string;
  /** The label of an own job. */
  job?: string;
  /** The id of a pool of this server. */
  pool?: string;
  selection: ISelection;
  /** Set if the row can be dragged to another place. */
  drag?: DragProps;
  /** The state in words, and its time. */
  children: React.ReactNode;
}

/** Two lines, and a menu if it is an own job or a pool of this server. */
export function RowFrame(props: IRowFrameProps): JSX.Element {
  const { name, place, mood, title, job, pool, selection, drag } = props;
  const isPicked = job !== undefined && selection.has(job);
  const open = (place: IMenuPlace) =>
    openMenu(
      props,
      place,
      job === undefined
        ? [CommandIDs.parkPool, CommandIDs.stopPool].map(command => ({
            command,
            args: { pool: pool ?? '' }
          }))
        : jobItems(selection.with(job))
    );
  const isOurs = (job ?? pool) !== undefined;
  const classes = [
    'jp-dist-QueueRow',
    `jp-mod-${mood}`,
    isOurs ? '' : 'jp-mod-foreign',
    isPicked ? 'jp-mod-picked' : '',
    drag?.className
  ];
  return (
    <li
      {...drag}
      className={classes.filter(Boolean).join(' ')}
      aria-label={name}
      onContextMenu={isOurs ? onContextMenu(open) : undefined}
    >
      <div className="jp-dist-QueueRow-head">
        {job === undefined ? (
          <strong title={name}>{name}</strong>
        ) : (
          <button
            type="button"
            title={trans.__(
              '%1: click for details; Ctrl+click or Space to select several.',
              name
            )}
            aria-pressed={isPicked}
            onClick={({ ctrlKey, metaKey, shiftKey }) => {
              if (ctrlKey || metaKey || shiftKey) {
                selection.toggle(job);
              } else {
                void props.commands.execute(CommandIDs.openJob, { job });
              }
            }}
            onKeyUp={event => {
              if (event.key === ' ') {
                event.preventDefault();
                selection.toggle(job);
              }
            }}
          >
            {name}
          </button>
        )}
        <span className="jp-dist-quiet">{place}</span>
        {isOurs && (
          <MenuButton label={trans.__('Menu of %1', name)} open={open} />
        )}
      </div>
      <div className="jp-dist-QueueRow-state" title={title || undefined}>
        {props.children}
      </div>
    </li>
  );
}

/** Actions on own jobs; those that apply to none of the jobs are hidden. */
function jobItems(jobs: string[]): Menu.IItemOptions[] {
  const actions = [
    CommandIDs.holdJobs,
    CommandIDs.releaseJobs,
    CommandIDs.requeueJobs,
    CommandIDs.cancelJobs
  ].map(command => ({ command, args: { jobs } }));
  const [job, ...others] = jobs;
  return others.length
    ? actions
    : [
        { command: CommandIDs.openJob, args: { job } },
        { type: 'separator' },
        ...actions,
        { type: 'separator' },
        { command: CommandIDs.moveJob, args: { job, by: -1 } },
        { command: CommandIDs.moveJob, args: { job, by: 1 } }
      ];
}
