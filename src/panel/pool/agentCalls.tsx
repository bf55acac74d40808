import React, { useState } from 'react';

import type { IAgentCall } from '../../model/contract';
import { trans } from '../../model/trans';
import { Link } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { formatTime, joinFacts } from '../../words/format';
import type { IPanelServices } from '../services';

/** What coding agents have done here: the last call in a line, and all of them when it is opened. */
export function AgentCalls({ model }: IPanelServices): JSX.Element | null {
  const calls = useModel(model, ({ agentCalls }) => agentCalls);
  const pools = useModel(model, ({ pools }) => pools);
  const [isOpen, setIsOpen] = useState(false);
  if (!calls.length) {
    return null;
  }
  const [last] = calls;
  return (
    <div className="jp-dist-AgentCalls">
      <Link aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        {joinFacts([`${last.agent}: ${last.tool}`, sayWhen(last)])}
      </Link>
      {isOpen && (
        <ol aria-label={trans.__('Calls of coding agents')}>
          {calls.map(call => (
            <li key={call.id}>
              <p className={call.failed ? 'jp-dist-warn' : 'jp-dist-quiet'}>
                {joinFacts([
                  `${call.agent}: ${call.tool}`,
                  pools.get(call.pool ?? '')?.name || (call.pool ?? ''),
                  sayWhen(call)
                ])}
              </p>
              {call.what && <pre className="jp-dist-Log">{call.what}</pre>}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

function sayWhen({ begun, ended, failed }: IAgentCall): string {
  const time = formatTime(begun * 1000);
  return ended === null
    ? trans.__('%1, running', time)
    : failed
      ? trans.__('%1, failed', time)
      : time;
}
