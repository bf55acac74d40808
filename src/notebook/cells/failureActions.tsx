import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { Button, ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { JSONExt } from '@lumino/coreutils';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { PanelLayout } from '@lumino/widgets';
import React from 'react';

import { deadRanks, poolOf } from '../../model/contract';
import type { IPool } from '../../model/contract';
import type { ITelemetry } from '../../model/telemetry';
import { CommandIDs } from '../../model/tokens';
import type { IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { silentRanks } from '../../model/waiting';
import { useModel } from '../../ui/useModel';
import { listRanks } from '../../words/format';
import { sayRestart } from '../../words/poolState';

/** By the id of a cell, the ranks that died in it, and those that do not respond to it. */
type Failures = Record<string, { dead: number[]; silent: number[] }>;

/**
 * Keeps buttons below the outputs of cells in which ranks of the running pool died, or to which some do not
 * respond, until these are replaced.
 */
export class FailureActions {
  constructor(private readonly _options: FailureActions.IOptions) {}

  /** Look again which ranks are dead or silent. */
  follow(): void {
    const { panel, model } = this._options;
    const kernel = panel.sessionContext.session?.kernel?.id;
    const pool = poolOf(kernel, model.pools.values());
    const failures =
      pool?.state === 'RUNNING' ? failuresOf(pool, model.telemetry) : {};
    if (JSONExt.deepEqual(failures, this._shown)) {
      return;
    }
    this._shown = failures;
    this._bars.forEach(bar => bar.dispose());
    this._bars = panel.content.widgets.flatMap(cell => {
      const failed = failures[cell.model.id];
      return pool && failed ? [this._addBar(cell, pool.id, failed)] : [];
    });
  }

  private _addBar(
    cell: Cell,
    pool: string,
    failed: Failures[string]
  ): ReactWidget {
    const { model, commands } = this._options;
    const bar = ReactWidget.create(
      <FailureButtons {...{ pool, ...failed, model, commands }} />
    );
    bar.addClass('jp-dist-FailureActions');
    // In a cell that is not drawn yet it would come first, and JupyterLab would not draw it.
    void cell.ready.then(() => {
      if (!bar.isDisposed && !cell.isDisposed) {
        (cell.layout as PanelLayout).addWidget(bar);
      }
    });
    return bar;
  }

  private _shown: Failures = {};
  private _bars: ReactWidget[] = [];
}

export namespace FailureActions {
  export interface IOptions {
    panel: NotebookPanel;
    model: IPoolsModel;
    commands: CommandRegistry;
  }
}

function failuresOf(pool: IPool, telemetry: ITelemetry): Failures {
  const failures: Failures = {};
  const of = (cell: string) => (failures[cell] ??= { dead: [], silent: [] });
  for (const { rank, cell_id } of deadRanks(pool)) {
    if (cell_id !== null) {
      of(cell_id).dead.push(rank);
    }
  }
  const silent = silentRanks(pool, telemetry);
  // A rank that is stopped before a cell never begins it: it is the others' last one.
  const last = silent.length > 0 ? lastCell(pool) : null;
  if (last !== null) {
    of(last).silent.push(...silent);
  }
  return failures;
}

function lastCell({ ranks }: IPool): string | null {
  const [last] = ranks
    .filter(({ cell_id }) => cell_id !== null)
    .sort((a, b) => b.since - a.since);
  return last?.cell_id ?? null;
}

interface IFailureButtonsProps {
  pool: string;
  dead: number[];
  silent: number[];
  model: IPoolsModel;
  commands: CommandRegistry;
}

function FailureButtons(props: IFailureButtonsProps): JSX.Element {
  const { pool, dead, silent, model, commands } = props;
  const isPending = useModel(model, model => model.hasRequest(pool));
  const restart = (args: ReadonlyPartialJSONObject, label: string) => (
    <Button
      small
      className="jp-mod-primary"
      disabled={isPending}
      onClick={() =>
        void commands.execute(CommandIDs.restartRanks, { pool, ...args })
      }
    >
      {label}
    </Button>
  );
  return (
    <div role="group" aria-label={trans.__('What to do about failed ranks')}>
      {dead.length > 0 &&
        restart(
          { ranks: dead, dead: true },
          trans._n(
            'Restart rank %2',
            'Restart ranks %2',
            dead.length,
            listRanks(dead)
          )
        )}
      {silent.length > 0 && restart({ ranks: silent }, sayRestart(silent))}
      {dead.slice(0, MOST_LOGS).map(rank => (
        <Button
          key={rank}
          small
          onClick={() =>
            void commands.execute(CommandIDs.showLog, { pool, rank })
          }
        >
          {dead.length > 1
            ? trans.__('Show log of rank %1', rank)
            : trans.__('Show log')}
        </Button>
      ))}
    </div>
  );
}

/** More ranks mostly died of the same. */
const MOST_LOGS = 3;
