import type { HTMLAttributes } from 'react';
import { useState } from 'react';

import type { IQueueModel } from '../../model/queue';
import { ownLine } from '../../model/queueContract';
import type { IQueueRow } from '../../model/queueContract';

/** What a row that can be dragged, or dropped on, adds to its element. */
export type DragProps = Pick<
  HTMLAttributes<HTMLElement>,
  | 'draggable'
  | 'className'
  | 'onDragStart'
  | 'onDragOver'
  | 'onDragLeave'
  | 'onDrop'
  | 'onDragEnd'
>;

/** Own jobs that stand in line are dragged to another place among them; the keyboard has the menu. */
export function useDragging(
  queue: IQueueModel
): (row: IQueueRow) => DragProps | undefined {
  const [dragged, setDragged] = useState<string | null>(null);
  const [target, setTarget] = useState<string | null>(null);
  const line = ownLine(queue.rows ?? []);
  const placeOf = (job: string | null) =>
    line.findIndex(({ id }) => id === job);
  const end = () => {
    setDragged(null);
    setTarget(null);
  };
  return row => {
    const place = line.indexOf(row);
    if (place < 0) {
      return undefined;
    }
    const from = placeOf(dragged);
    const isTarget = target === row.id && from >= 0 && from !== place;
    return {
      draggable: true,
      className:
        dragged === row.id
          ? 'jp-mod-dragged'
          : isTarget
            ? place < from
              ? 'jp-mod-dropBefore'
              : 'jp-mod-dropAfter'
            : '',
      onDragStart: event => {
        event.dataTransfer.effectAllowed = 'move';
        // Firefox drags nothing without data.
        event.dataTransfer.setData('text/plain', row.id);
        setDragged(row.id);
      },
      onDragOver: event => {
        if (from >= 0) {
          event.preventDefault();
          event.dataTransfer.dropEffect = 'move';
          setTarget(row.id);
        }
      },
      onDragLeave: () => setTarget(null),
      onDrop: event => {
        if (dragged !== null && from >= 0 && from !== place) {
          event.preventDefault();
          void queue.move(dragged, place);
        }
        end();
      },
      onDragEnd: end
    };
  };
}
