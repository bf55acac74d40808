import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Button, ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { JSONExt } from '@lumino/coreutils';
import type { PanelLayout } from '@lumino/widgets';
import React from 'react';

import { deadRanks, poolOf } from '../../model/contract';
import type { IPool } from '../../model/contract';
import { CommandIDs } from '../../model/tokens';
import type { IPoolsModel } from '../../model/tokens';
import { listRanks } from '../../words/format';

/** By the id of a cell, the ranks that died in it. */
type Deaths = Record<string, number[]>;

/**
 * Keeps buttons below the outputs of cells in which ranks of the running pool died, until these are replaced.
 */
export class FailureActions {
  constructor(private readonly _options: FailureActions.IOptions) {}

  /** Look again which ranks are dead. */
  follow(): void {
    const { panel, model } = this._options;
    const kernel = panel.sessionContext.session?.kernel?.id;
    const pool = poolOf(kernel, model.pools.values());
    const deaths = pool?.state === 'RUNNING' ? deathsOf(pool) : {};
    if (JSONExt.deepEqual(deaths, this._shown)) {
      return;
    }
    this._shown = deaths;
    this._bars.forEach(bar => bar.dispose());
    this._bars = panel.content.widgets.flatMap(cell => {
      const ranks = deaths[cell.model.id];
      return pool && ranks ? [this._addBar(cell, pool.id, ranks)] : [];
    });
  }

  private _addBar(cell: Cell, pool: string, ranks: number[]): ReactWidget {
    const { commands, trans } = this._options;
    const bar = ReactWidget.create(
      <FailureButtons {...{ pool, ranks, commands, trans }} />
    );
    bar.addClass('jp-dist-FailureActions');
    (cell.layout as PanelLayout).addWidget(bar);
    return bar;
  }

  private _shown: Deaths = {};
  private _bars: ReactWidget[] = [];
}

export namespace FailureActions {
  export interface IOptions {
    panel: NotebookPanel;
    model: IPoolsModel;
    commands: CommandRegistry;
    trans: TranslationBundle;
  }
}

function deathsOf(pool: IPool): Deaths {
  const deaths: Deaths = {};
  for (const { rank, cell_id } of deadRanks(pool)) {
    if (cell_id !== null) {
      (deaths[cell_id] ??= []).push(rank);
    }
  }
  return deaths;
}

interface IFailureButtonsProps {
  pool: string;
  ranks: number[];
  commands: CommandRegistry;
  trans: TranslationBundle;
}

function FailureButtons(props: IFailureButtonsProps): JSX.Element {
  const { pool, ranks, commands, trans } = props;
  return (
    <div role="group" aria-label={trans.__('What to do about dead ranks')}>
      <Button
        small
        className="jp-mod-primary"
        onClick={() =>
          void commands.execute(CommandIDs.restartRanks, {
            ...{ pool, ranks },
            dead: true
          })
        }
      >
        {trans._n(
          'Restart rank %2',
          'Restart ranks %2',
          ranks.length,
          listRanks(ranks)
        )}
      </Button>
      {ranks.slice(0, MOST_LOGS).map(rank => (
        <Button
          key={rank}
          small
          onClick={() =>
            void commands.execute(CommandIDs.showLog, { pool, rank })
          }
        >
          {ranks.length > 1
            ? trans.__('Show log of rank %1', rank)
            : trans.__('Show log')}
        </Button>
      ))}
    </div>
  );
}

/** More ranks mostly died of the same. */
const MOST_LOGS = 3;
