import type { IAgentCall } from '../model/contract';
import { AgentCalls } from '../panel/pool/agentCalls';
import { makePool } from './samples';
import { button, host, press, show } from './screen';

const begun = new Date(2026, 0, 1, 14, 3, 12).getTime() / 1000;
const call: IAgentCall = {
  id: 2,
  agent: 'Claude Code',
  tool: 'run_on_ranks',
  pool: 'p1',
  what: 'x = rank\nprint(x)',
  begun,
  ended: null,
  failed: false
};
const failed = { ...call, id: 1, tool: 'pool', what: '', failed: true };

describe('AgentCalls', () => {
  it('shows nothing where no agent has called', () => {
    show({}, AgentCalls);
    expect(host.textContent).toBe('');
  });

  it('shows the last call, and what all have run when it is opened', () => {
    const pool = makePool({ id: 'p1', name: 'train.ipynb' });
    const agentCalls = [call, { ...failed, ended: begun + 1 }];
    show({ agentCalls, pools: new Map([['p1', pool]]) }, AgentCalls);
    const line = 'Claude Code: run_on_ranks · 14:03:12, running';
    expect(host.textContent).toBe(line);
    expect(button(line).getAttribute('aria-expanded')).toBe('false');
    press(line);
    const items = [...host.querySelectorAll('li')];
    expect(items.map(item => item.querySelector('p')?.textContent)).toEqual([
      'Claude Code: run_on_ranks · train.ipynb · 14:03:12, running',
      'Claude Code: pool · train.ipynb · 14:03:12, failed'
    ]);
    expect(items[0].querySelector('pre')?.textContent).toBe(call.what);
    expect(items[1].querySelector('pre')).toBe(null);
    press(line);
    expect(host.textContent).toBe(line);
  });
});
