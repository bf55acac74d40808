import React, { memo, useState } from 'react';

import { trans } from '../../model/trans';
import type { IVariable } from '../../model/variablesContract';
import { formatBytes } from '../../words/format';
import {
  sayContent,
  sayForm,
  sayOf,
  sayShard
} from '../../words/variableWords';
import { Sentence, ShowMore } from '../../ui/controls';

/** Lines on what a variable is that are shown at once. */
const MANY = 4;

interface IVariableRowsProps {
  variable: IVariable;
  /** All ranks that the list is of. */
  ranks: number[];
}

/** One variable: its name, its memory, how it compares; and below, what it is on which ranks. */
export const VariableRows = memo(function VariableRows(
  props: IVariableRowsProps
): JSX.Element {
  const { variable, ranks } = props;
  const { name, content, nbytes, differences, differing } = variable;
  const [isUnfolded, setUnfolded] = useState(false);
  const { word, meaning } = sayContent(variable);
  const lines = sayForms(variable, ranks);
  const shown = isUnfolded ? lines : lines.slice(0, MANY);
  const more = differing - differences.length;
  return (
    <tbody className={`jp-mod-${content}`}>
      <tr>
        <th scope="row" title={name}>
          {name}
        </th>
        <td>{formatBytes(nbytes)}</td>
        <td title={meaning}>{word}</td>
      </tr>
      <tr>
        <td colSpan={3}>
          {shown.map(line => (
            <div key={line} className="jp-dist-quiet">
              {line}
            </div>
          ))}
          <ShowMore
            count={lines.length - shown.length}
            show={() => setUnfolded(true)}
          />
          {differences.map(sentence => (
            <div key={sentence} className="jp-dist-warn">
              <Sentence text={sentence} />
            </div>
          ))}
          {more > 0 && (
            <div className="jp-dist-warn">
              {trans._n('%1 more differs.', '%1 more differ.', more)}
            </div>
          )}
        </td>
      </tr>
    </tbody>
  );
});

/** What it is, in one line where it is the same on all ranks, or in parts of one thing. */
function sayForms({ forms }: IVariable, ranks: number[]): string[] {
  const lines = forms.map(form => sayForm(form));
  if (forms.every(({ shard }) => shard) && new Set(lines).size === 1) {
    return [lines[0], ...forms.map(form => sayShard(form))];
  }
  return forms.map((form, index) =>
    form.ranks.length === ranks.length
      ? lines[index]
      : sayOf(form, lines[index])
  );
}
