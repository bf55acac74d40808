import React, { useState } from 'react';

import type { IAgentCall } from '../../model/contract';
import { trans } from '../../model/trans';
import { Link } from '../../ui/controls';
import { useModel } from '../../ui/useModel';
import { formatTime, joinFacts } from '../../words/format';
import type { IPanelServices } from '../services';

/** What coding agents have done here: the last call in a line, and all of them when it is opened. */
export function AgentCalls(services: IPanelServices): JSX.Element | null {
  const calls = useModel(services.model, ({ agentCalls }) => agentCalls);
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
      {isOpen && <Calls {...services} calls={calls} />}
    </div>
  );
}

function Calls(
  props: IPanelServices & { calls: readonly IAgentCall[] }
): JSX.Element {
  const pools = useModel(props.model, ({ pools }) => pools);
  return (
    <ol aria-label={trans.__('Calls of coding agents')}>
      {props.calls.map(call => (
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
