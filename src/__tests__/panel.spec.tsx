import { whenKnown } from '../panel/connectionNote';
import { OtherPools } from '../panel/others/otherPools';
import { PoolSummary } from '../panel/pool/poolView';
import { serverTime } from '../model/serverTime';
import { CommandIDs } from '../model/tokens';
import { makeAttachment, makePool, makeRank } from './samples';
import { button, executed, host, press, show } from './screen';

describe('PoolView', () => {
  it('asks for a notebook, and for a kernel', () => {
    show({ notebook: null });
    expect(host.textContent).toBe('Open a notebook to start ranks for it.');
    show({
      notebook: {
        path: 'a.ipynb',
        kernelId: null,
        sessionId: null,
        isPython: true
      }
    });
    expect(host.textContent).toMatch('This notebook has no kernel');
    press('Start kernel…');
    expect(executed).toEqual([{ id: 'notebook:change-kernel' }]);
    show({
      notebook: {
        path: 'a.ipynb',
        kernelId: 'k1',
        sessionId: 's1',
        isPython: false
      }
    });
    expect(host.textContent).toMatch('Choose a Python kernel');
    expect(host.querySelector('form')).toBeNull();
  });

  it('starts as many ranks as the stepper says', () => {
    show({});
    const input = host.querySelector('input');
    expect(input?.labels?.[0].textContent).toBe('Ranks');
    expect(input?.value).toBe('2');
    press('One rank more');
    press('One rank more');
    press('One rank fewer');
    press('Start');
    expect(executed).toEqual([
      { id: CommandIDs.startPool, choice: { num_ranks: 3 } }
    ]);
  });

  it('keeps the stepper between 1 and 128', () => {
    show({ defaultRanks: 1 });
    expect(button('One rank fewer').disabled).toBe(true);
    show({
      notebook: { path: 'b', kernelId: 'k2', sessionId: 'sk2', isPython: true },
      defaultRanks: 128
    });
    expect(button('One rank more').disabled).toBe(true);
  });

  it('shows how far a start has come, and cancels it', () => {
    show({
      pool: makePool({
        state: 'CONFIGURING',
        started: null,
        progress: { phase: 'importing torch', ready: 1 },
        ranks: []
      })
    });
    expect(host.querySelector('[role=status]')?.textContent).toBe('Starting');
    expect(host.textContent).toMatch('importing torch');
    const bar = host.querySelector('[role=progressbar]');
    expect(bar?.getAttribute('aria-label')).toBe('1 of 2 ranks ready');
    press('Cancel');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p1' }]);
  });

  it('counts one rank as one', () => {
    const progress = { phase: '', ready: 0 };
    const pool = { state: 'CONFIGURING', started: null, progress } as const;
    show({ pool: makePool({ ...pool, world_size: 1, ranks: [] }) });
    expect(host.textContent).toMatch('0 of 1 rank ready');
  });

  it('can go on without a node that is lost', () => {
    const ranks = [makeRank(0), makeRank(1, { state: 'dead' })];
    show({ pool: makePool({ ranks, lost_nodes: ['n2'] }) });
    press('Go on without node n2…');
    expect(executed).toEqual([{ id: CommandIDs.leaveLostNodes, pool: 'p1' }]);
  });

  it('keeps the tiles while ranks are replaced', () => {
    const ranks = [makeRank(0), makeRank(1, { state: 'starting' })];
    show({ pool: makePool({ state: 'CONFIGURING', ranks }) });
    expect(host.querySelector('[role=status]')?.textContent).toBe(
      'Replacing ranks'
    );
    expect(host.querySelectorAll('ul[aria-label=Ranks] > li')).toHaveLength(2);
  });

  it('shows a tile per rank while it runs', () => {
    const gpu = { index: 4, label: '4', uuid: 'GPU-4', name: 'H100' };
    show({
      pool: makePool({
        notices: ['Ranks share GPU 0, so the pool uses gloo.'],
        ranks: [
          makeRank(0, { gpu }),
          makeRank(1, {
            state: 'dead',
            exit: 'killed by signal 9 (SIGKILL)',
            stderr: ['one', 'two']
          })
        ]
      })
    });
    const tiles = [...host.querySelectorAll('ul[aria-label=Ranks] > li')];
    expect(tiles.map(tile => tile.getAttribute('aria-label'))).toEqual([
      'Rank 0',
      'Rank 1'
    ]);
    expect(tiles[0].textContent).toMatch(/^Rank 0GPU 4idle \d+ .*pid 1000$/);
    expect(tiles[1].textContent).toMatch(
      'CPUdead: killed by signal 9 (SIGKILL)'
    );
    expect(host.querySelector('[role=note]')?.textContent).toMatch('gloo');
    expect(host.querySelector('[role=status]')?.textContent).toBe(
      '1 rank dead'
    );
    expect(host.querySelector('[role=alert]')?.textContent).toBe(
      'Rank 1 died. The other ranks keep their variables; collectives hang until it is restarted.'
    );
    const label = 'pre[aria-label="Last lines of rank 1"]';
    expect(host.querySelector(label)?.textContent).toBe('one\ntwo');
    press('Restart rank 1');
    expect(button('Interrupt').disabled).toBe(true);
    press('Restart…');
    press('Stop…');
    expect(executed).toEqual([
      { id: CommandIDs.restartRanks, pool: 'p1', dead: true },
      { id: CommandIDs.restartRanks, pool: 'p1' },
      { id: CommandIDs.stopPool, pool: 'p1' }
    ]);
  });

  it('folds notices, and forgets those that are dismissed', () => {
    show({ pool: makePool({ notices: ['One.', 'Two.'] }) });
    expect(host.textContent).not.toMatch('One.');
    press('2 notices');
    expect(host.textContent).toMatch('One.Two.');
    press('Dismiss this notice');
    expect(host.textContent).not.toMatch('One.');
    expect(host.textContent).toMatch('Two.');
    press('Dismiss this notice');
    expect(host.querySelector('[role=note]')).toBeNull();
  });

  it('interrupts what runs', () => {
    const ranks = [makeRank(0), makeRank(1, { state: 'busy', cell: 3 })];
    show({ pool: makePool({ ranks }) });
    press('Interrupt');
    expect(executed).toEqual([{ id: CommandIDs.interruptRanks, pool: 'p1' }]);
  });

  it('says at once that a cell is being interrupted, and how far that is', () => {
    const ranks = [makeRank(0, { state: 'busy', cell: 3 })];
    const pool = makePool({ ranks });
    const stopped = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const now = serverTime();
    show({ pool, interruptedAt: () => now - 1 });
    expect(host.textContent).toMatch(/^Interrupting…stopping the cell · \d s/);
    show({ pool, interruptedAt: () => now - 3 });
    expect(host.textContent).toMatch(
      /^Interrupting…ending the collective · \d s/
    );
    stopped.mockRestore();
  });

  it('scrolls a refusal into sight', () => {
    const scroll = jest.fn();
    Element.prototype.scrollIntoView = scroll;
    show({ error: { code: 'x', message: 'No.', hint: '' } });
    expect(scroll.mock.instances[0]).toBe(host.querySelector('[role=alert]'));
    scroll.mockClear();
    show({});
    expect(scroll).not.toHaveBeenCalled();
    delete (Element.prototype as Partial<Element>).scrollIntoView;
  });

  it('hands the focus on to what can be done next', () => {
    show({});
    button('Start').focus();
    show({
      pool: makePool({ state: 'CONFIGURING', started: null, ranks: [] })
    });
    expect(document.activeElement).toBe(button('Cancel'));
    show({ pool: makePool() });
    expect(document.activeElement).toBe(button('Restart…'));
    button('Stop…').focus();
    show({ pool: makePool({ state: 'COMPLETED' }) });
    expect(document.activeElement).toBe(button('Start'));
    button('Start').blur();
    document.body.dispatchEvent(new Event('pointerdown', { bubbles: true }));
    show({ pool: makePool() });
    expect(document.activeElement).toBe(document.body);
  });

  it('offers nothing to press while it stops', () => {
    const ranks = [makeRank(0, { state: 'dead', exit: 'exited' }), makeRank(1)];
    show({ pool: makePool({ state: 'COMPLETING', ranks }) });
    expect(host.querySelector('[role=status]')?.textContent).toBe('Stopping');
    expect(button('Stop…').disabled).toBe(true);
    const [first, second] = host.querySelectorAll('li');
    expect(first.textContent).toMatch('stopped');
    expect(second.textContent).toMatch('stopping');
    expect(host.querySelector('[role=alert]')).toBeNull();
  });

  it('says why a start failed, and tries again', () => {
    show({
      pool: makePool({
        state: 'FAILED',
        world_size: 4,
        reason: {
          code: 'rank_died',
          message: 'Rank 1 ended.',
          hint: 'Install torch.',
          rank: 1,
          stderr: ['one', 'two']
        }
      })
    });
    expect(host.querySelector('[role=alert]')?.textContent).toBe(
      'Rank 1 ended.Install torch.'
    );
    expect(host.querySelector('pre')?.textContent).toBe('one\ntwo');
    button('Copy');
    press('Start again');
    expect(executed).toEqual([
      { id: CommandIDs.startPool, choice: { num_ranks: 4 } }
    ]);
  });

  it.each([
    ['COMPLETED', '2 ranks stopped.'],
    ['CANCELLED', 'The start was cancelled.']
  ] as const)('is back at the start when %s', (state, text) => {
    show({ pool: makePool({ state }) });
    expect(host.querySelector('[role=status]')?.textContent).toBe(text);
    button('Start');
  });

  it('says that a pool was stopped as nobody came for it', () => {
    const message = 'The kernel had been gone for 600 s.';
    const reason = { code: 'orphaned', message, hint: '', rank: null };
    show({
      pool: makePool({ state: 'COMPLETED', reason: { ...reason, stderr: [] } })
    });
    expect(host.querySelector('[role=status]')?.textContent).toBe(message);
    button('Start');
  });

  it('names the other notebooks that use the pool', () => {
    const attachments = [
      makeAttachment(),
      makeAttachment({ kernel_id: null, name: '' }),
      makeAttachment({ pid: 901, kernel_id: 'k2', name: 'deep/plot.ipynb' }),
      makeAttachment({ pid: 901, kernel_id: null, name: '' }),
      makeAttachment({ pid: 902, kernel_id: null, name: '' })
    ];
    show({ pool: makePool({ attachments }) });
    expect(host.textContent).toMatch('Also used by plot.ipynb, pid 902');
    show({ pool: makePool() });
    expect(host.textContent).not.toMatch('Also used');
  });

  it('says how to enable a missing server extension', () => {
    const reconnect = jest.fn();
    show({ connection: { state: 'missing' }, reconnect });
    expect(host.querySelector('pre')?.textContent).toBe(
      'jupyter server extension enable jupyter_dist_server'
    );
    press('Check again');
    expect(reconnect).toHaveBeenCalled();
  });

  it('keeps showing a stale pool, and says so', () => {
    const since = new Date(2026, 0, 1, 14, 3, 12).getTime();
    show({ connection: { state: 'stale', since }, pool: makePool() });
    expect(host.textContent).toMatch(
      'Disconnected since Jan 1, 14:03. Reconnecting…'
    );
    expect(host.querySelectorAll('li')).toHaveLength(2);
  });

  it('denies nothing before the server has told anything', () => {
    const since = Date.now();
    show({ connection: { state: 'stale', since }, isKnown: false });
    expect(host.textContent).not.toMatch('No ranks run');
    expect(host.querySelector('form')).toBeNull();
    expect(host.querySelector('[role=status]')?.textContent).toMatch(
      'No connection to the server yet.'
    );
    show(
      { connection: { state: 'stale', since }, isKnown: false },
      whenKnown(OtherPools)
    );
    expect(host.textContent).toBe('');
  });

  it('shows why a request failed until it is dismissed', () => {
    const dismissError = jest.fn();
    show({ error: { code: 'x', message: 'No.', hint: 'Try.' }, dismissError });
    expect(host.querySelector('[role=alert]')?.textContent).toMatch('No.Try.');
    press('Dismiss');
    expect(dismissError).toHaveBeenCalled();
  });
});

describe('PoolSummary', () => {
  it('says size, back end and age in a line', () => {
    const started = Math.floor(Date.now() / 1000) - 725;
    show({ pool: makePool({ started }) }, PoolSummary);
    expect(host.textContent).toBe('2 ranks · gloo · 12 min');
  });
});
