import { Button } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';

import type { IPool } from '../../model/contract';
import { isParked } from '../../model/parking';
import { trans } from '../../model/trans';
import type { IVariables } from '../../model/variablesContract';
import { ErrorWithRetry, Sentence } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { joinFacts } from '../../words/format';
import { sayAbsent, sayBusy } from '../../words/variableWords';
import { isStale } from '../connectionNote';
import type { IPanelServices } from '../services';
import { VariableTable } from './variableTable';

/** What the variables of the ranks are, and which are not the same on all of them. */
export function VariablesSection(services: IPanelServices): JSX.Element {
  const pool = useModel(services.current, ({ pool }) => pool);
  return pool?.state === 'RUNNING' && !isParked(pool) ? (
    <Content {...services} pool={pool} />
  ) : (
    <p className="jp-dist-quiet">
      {pool && isParked(pool)
        ? trans.__(
            'The pool is parked. Its variables are listed when it runs again.'
          )
        : trans.__('The variables of running ranks are listed here.')}
    </p>
  );
}

function Content(props: IPanelServices & { pool: IPool }): JSX.Element | null {
  const { model, variables, pool } = props;
  const list = useModel(variables, ({ list }) => list);
  const error = useModel(variables, ({ error }) => error);
  const isLost = useModel(model, isStale);
  const busy = pool.ranks.filter(({ state }) => state === 'busy');
  useEffect(() => {
    // No cell may run that would have them read again.
    if (!isLost && variables.error?.code === 'unreachable') {
      variables.reload();
    }
  }, [isLost, variables]);
  // While the connection is lost, the panel says so at its top.
  if (error && !isLost) {
    return <ErrorWithRetry error={error} retry={() => variables.reload()} />;
  }
  if (!list) {
    return isLost ? null : (
      <p className="jp-dist-quiet jp-dist-loading" role="status">
        {trans.__('Reading the variables…')}
      </p>
    );
  }
  // Those that run a cell now are known better than those that ran one then.
  const absent = sayAbsent({ ...list, busy: [] });
  if (busy.length) {
    absent.unshift(sayBusy(busy.map(({ rank }) => rank)));
  }
  return (
    <>
      {absent.map(sentence => (
        <p key={sentence} className="jp-dist-quiet" role="status">
          {sentence}
        </p>
      ))}
      <List {...props} list={list} />
    </>
  );
}

function List(
  props: IPanelServices & { list: IVariables; pool: IPool }
): JSX.Element | null {
  const { list, model, pool, variables } = props;
  const [words, setWords] = useState('');
  const isChecking = useModel(variables, ({ isChecking }) => isChecking);
  const isOld = useModel(variables, ({ isOld }) => isOld);
  const isLost = useModel(model, isStale);
  if (!list.variables.length) {
    // Nothing is known of ranks that have not answered.
    return !list.ranks.length ? null : (
      <p className="jp-dist-quiet">
        {trans.__('The ranks have no variables yet.')}
      </p>
    );
  }
  const label = trans.__('Filter variables');
  return (
    <>
      <div className="jp-dist-VariableTools" data-lm-suppress-shortcuts="true">
        <input
          type="search"
          className="jp-mod-styled"
          placeholder={label}
          aria-label={label}
          value={words}
          onChange={event => setWords(event.target.value)}
        />
        <Button
          small
          disabled={isLost || pool.ranks.every(({ state }) => state === 'busy')}
          // Not disabled: it would lose the focus.
          aria-disabled={isChecking}
          title={trans.__(
            'Compare all variables between ranks bit by bit, however large.'
          )}
          onClick={() => void variables.check()}
        >
          {isChecking ? trans.__('Checking…') : trans.__('Check')}
        </Button>
      </div>
      {list.sentences.length > 0 && (
        <div className="jp-dist-Note jp-mod-info" role="status">
          {list.sentences.map(sentence => (
            <p key={sentence}>
              <Sentence text={sentence} />
            </p>
          ))}
        </div>
      )}
      <VariableTable list={list} words={words} isOld={isOld || isLost} />
    </>
  );
}

/** What stands beside the section's title: `12 · 1 differs`. */
export function VariablesSummary({
  variables
}: IPanelServices): JSX.Element | null {
  const list = useModel(variables, ({ list, isOld }) => (isOld ? null : list));
  if (!list?.variables.length) {
    return null;
  }
  const differing = list.variables.filter(
    ({ content }) => content === 'differs'
  ).length;
  return (
    <>
      {joinFacts([
        `${list.variables.length}`,
        differing > 0 && trans._n('%1 differs', '%1 differ', differing)
      ])}
    </>
  );
}
