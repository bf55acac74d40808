import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { Button, ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { PanelLayout } from '@lumino/widgets';
import React from 'react';

import { deadRanks, poolOf, type IPool } from '../../model/contract';
import type { ITelemetry } from '../../model/telemetry';
import { CommandIDs, type IPoolsModel } from '../../model/tokens';
import { trans } from '../../model/trans';
import { silentRanks } from '../../model/waiting';
import { isSame, useModel } from '../../ui/useModel';
import { listRanks } from '../../words/format';
import { sayRestart } from '../../words/poolWords';

/** The number of ranks whose logs are offered: they mostly died of the same. */
const MOST_LOGS = 3;

interface IFailure {
  dead: number[];
  silent: number[];
}

interface IOptions {
  panel: NotebookPanel;
  model: IPoolsModel;
  commands: CommandRegistry;
}

/** Buttons below the outputs of cells in which ranks died, or to which ranks do not respond. */
export class FailureActions {
  constructor(private readonly _options: IOptions) {}

  follow(): void {
    const { panel, model } = this._options;
    const kernel = panel.sessionContext.session?.kernel?.id;
    const pool = poolOf(kernel, model.pools.values());
    const failures =
      pool?.state === 'RUNNING' ? failuresOf(pool, model.telemetry) : {};
    if (isSame(failures, this._shown)) {
      return;
    }
    this._shown = failures;
    this._bars.forEach(bar => bar.dispose());
    this._bars = panel.content.widgets.flatMap(cell => {
      const failure = failures[cell.model.id];
      return pool && failure ? [this._addBar(cell, pool.id, failure)] : [];
    });
  }

  private _addBar(cell: Cell, pool: string, failure: IFailure): ReactWidget {
    const bar = ReactWidget.create(
      <FailureButtons {...this._options} {...failure} pool={pool} />
    );
    bar.addClass('jp-dist-FailureActions');
    // JupyterLab would not draw a cell that has a widget before it is ready.
    void cell.ready.then(() => {
      if (!bar.isDisposed && !cell.isDisposed) {
        (cell.layout as PanelLayout).addWidget(bar);
      }
    });
    return bar;
  }

  private _shown: Record<string, IFailure> = {};
  private _bars: ReactWidget[] = [];
}

function failuresOf(
  pool: IPool,
  telemetry: ITelemetry
): Record<string, IFailure> {
  const failures: Record<string, IFailure> = {};
  const of = (cell: string) => (failures[cell] ??= { dead: [], silent: [] });
  for (const { rank, cell_id } of deadRanks(pool)) {
    if (cell_id !== null) {
      of(cell_id).dead.push(rank);
    }
  }
  const silent = silentRanks(pool, telemetry);
  // A rank that is stopped before a cell never begins it, so the last cell of any rank counts.
  const [last] = pool.ranks
    .filter(({ cell_id }) => cell_id !== null)
    .sort((a, b) => b.since - a.since);
  if (silent.length > 0 && last?.cell_id) {
    of(last.cell_id).silent.push(...silent);
  }
  return failures;
}

type FailureButtonsProps = IOptions & IFailure & { pool: string };

function FailureButtons(props: FailureButtonsProps): JSX.Element {
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
