import React, { useState } from 'react';

import { trans } from '../../model/trans';
import type {
  Content,
  IVariable,
  IVariables
} from '../../model/variablesContract';
import { ShowMore } from '../../ui/controls';
import { VariableRows } from './variableRows';

/** Variables that are shown at once. */
const MANY = 100;

/** What needs attention comes first. */
const CONTENTS: Content[] = [
  'differs',
  'unchecked',
  'single',
  'sharded',
  'equal',
  'incomparable'
];

type Column = 'name' | 'memory' | 'content';

const ORDERS: Record<Column, (a: IVariable, b: IVariable) => number> = {
  name: (a, b) => a.name.localeCompare(b.name),
  memory: (a, b) => b.nbytes - a.nbytes,
  content: (a, b) => CONTENTS.indexOf(a.content) - CONTENTS.indexOf(b.content)
};

interface IVariableTableProps {
  list: IVariables;
  /** What a variable must have in its name, its type or its dtype. */
  words: string;
  /** Whether the variables may be others by now. */
  isOld: boolean;
}

/** The variables in the order that the user chose, below each what it is on which ranks. */
export function VariableTable(props: IVariableTableProps): JSX.Element {
  const { list, words, isOld } = props;
  const [column, setColumn] = useState<Column>('name');
  const [isReversed, setReversed] = useState(false);
  const [isUnfolded, setUnfolded] = useState(false);
  const found = list.variables
    .filter(variable => matches(variable, words.trim().toLowerCase()))
    .sort((a, b) => ORDERS[column](a, b) || ORDERS.name(a, b));
  if (isReversed) {
    found.reverse();
  }
  if (!found.length) {
    return (
      <p className="jp-dist-quiet" role="status">
        {trans.__('No variable matches “%1”.', words)}
      </p>
    );
  }
  const shown = isUnfolded ? found : found.slice(0, MANY);
  const head = (name: Column, label: string, title: string) => (
    <th
      scope="col"
      aria-sort={
        column !== name
          ? 'none'
          : // The largest come first.
            isReversed === (name === 'memory')
            ? 'ascending'
            : 'descending'
      }
    >
      <button
        type="button"
        title={title}
        onClick={() => {
          setReversed(column === name && !isReversed);
          setColumn(name);
        }}
      >
        {label}
      </button>
    </th>
  );
  return (
    <>
      <table
        className={
          isOld ? 'jp-dist-Variables jp-mod-stale' : 'jp-dist-Variables'
        }
        aria-label={trans.__('Variables')}
        aria-busy={isOld}
      >
        <thead>
          <tr>
            {head('name', trans.__('Name'), trans.__('Sort by name'))}
            {head(
              'memory',
              trans.__('Memory'),
              trans.__('Sort by memory on the rank where it is largest')
            )}
            {head(
              'content',
              trans.__('Content'),
              trans.__('Sort by content: what differs between ranks first')
            )}
          </tr>
        </thead>
        {shown.map(variable => (
          <VariableRows
            key={variable.name}
            variable={variable}
            ranks={list.ranks}
          />
        ))}
      </table>
      <ShowMore
        count={found.length - shown.length}
        show={() => setUnfolded(true)}
      />
    </>
  );
}

function matches({ name, forms }: IVariable, words: string): boolean {
  const texts = [
    name,
    ...forms.flatMap(({ type, dtypes, devices }) => [
      type,
      ...dtypes,
      ...devices
    ])
  ];
  return texts.some(text => text.toLowerCase().includes(words));
}
