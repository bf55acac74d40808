import { act } from 'react';

import { Telemetry } from '../model/telemetry';
import { FakeStream, makeUsage } from './gpuSamples';
import { makePool, makeRank } from './samples';
import { CommandIDs } from '../model/tokens';
import { executed, host, press, show } from './screen';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

it('says that ranks wait too long also if the server has nothing new to say', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const pool = makePool({
    ranks: [makeRank(0, { state: 'busy', cell: 7 }), makeRank(1)]
  });
  show({ pool, telemetry, waitLimit: 10 });
  const waiting_since = Date.now() / 1000 - 7;
  const usage = makeUsage(0, { call: 'all_reduce', line: 12, waiting_since });
  act(() =>
    stream.received.emit({ type: 'usage', pools: { p1: [usage, null] } })
  );
  act(() => {
    jest.advanceTimersByTime(2900);
  });
  expect(host.textContent).not.toContain('never joined');
  act(() => {
    jest.advanceTimersByTime(300);
  });
  expect(host.textContent).toContain('Rank 1 never joined all_reduce.');
});

it('says nothing of a wait that it was told of before nobody looked', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const watching = telemetry.watch('gpus');
  const pool = makePool({
    ranks: [makeRank(0, { state: 'busy', cell: 7 }), makeRank(1)]
  });
  show({ pool, telemetry, waitLimit: 10 });
  const waiting_since = Date.now() / 1000 - 7;
  const usage = makeUsage(0, { call: 'all_reduce', line: 12, waiting_since });
  act(() =>
    stream.received.emit({ type: 'usage', pools: { p1: [usage, null] } })
  );
  act(() => watching.dispose());
  act(() => {
    jest.advanceTimersByTime(60_000);
  });
  act(() => void telemetry.watch('gpus'));
  expect(host.textContent).not.toContain('joined');
});

it('says what the server has found out, also of a wait that no rank tells of itself', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const pool = makePool({
    ranks: [makeRank(0, { state: 'busy', cell: 9 }), makeRank(1)]
  });
  show({ pool, telemetry, waitLimit: 10 });
  const sentence =
    'Rank 0 waits in all_reduce #7 (20 × float32), begun by `loss.backward()` at In[9] line 5. Rank 1 never began it: it has finished its cell.';
  const verdict = {
    kind: 'never_joined',
    sentence,
    hint: '',
    ranks: [1],
    stuck: true,
    remedies: [],
    op: 'all_reduce #7',
    since: Date.now() / 1000 - 7
  };
  const pools = { p1: [makeUsage(0), makeUsage(1)] };
  act(() =>
    stream.received.emit({ type: 'usage', pools, verdicts: { p1: verdict } })
  );
  expect(host.textContent).not.toContain('never');
  act(() => {
    jest.advanceTimersByTime(3300);
  });
  expect(host.textContent).toContain(
    `Rank 1 never joined all_reduce #7. ${sentence.replaceAll('`', '')}`
  );
  expect(host.querySelector('code')?.textContent).toBe('loss.backward()');
  act(() => stream.received.emit({ type: 'usage', pools, verdicts: {} }));
  expect(host.textContent).not.toContain('never');
});

it('says that there is no verdict, and how to report that', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const pool = makePool({
    ranks: [makeRank(0, { state: 'busy', cell: 9 }), makeRank(1)]
  });
  show({ pool, telemetry, waitLimit: 10 });
  const sentence =
    'No verdict: rank 0 began all_reduce #1 after all_reduce #3 of the same group.';
  const hint =
    'Before you stop the cell, write the evidence to a file for a bug report, in another notebook that is attached to the pool: %dist_why --save why.json';
  const verdict = {
    kind: 'contradiction',
    sentence,
    hint,
    ranks: [],
    stuck: false,
    remedies: [{ label: 'Interrupt', magic: '%dist_interrupt', restarts: [] }],
    op: 'all_reduce #7',
    since: Date.now() / 1000 - 11
  };
  const pools = { p1: [makeUsage(0), makeUsage(1)] };
  act(() =>
    stream.received.emit({ type: 'usage', pools, verdicts: { p1: verdict } })
  );
  expect(host.textContent).toContain(
    `It is not known why the ranks wait. ${sentence} ${hint}`
  );
});

it('offers to restart ranks that do not respond, but not those that are dead', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const pool = makePool({
    ranks: [
      makeRank(0, { state: 'busy', cell: 9 }),
      makeRank(1, { state: 'busy', cell: 9 }),
      makeRank(2, { state: 'dead' })
    ],
    world_size: 3
  });
  show({ pool, telemetry, waitLimit: 10 });
  const verdict = {
    kind: 'never_joined',
    sentence: 'Rank 0 waits in all_reduce #7.',
    hint: '',
    ranks: [1, 2],
    stuck: true,
    remedies: [
      { label: 'Interrupt', magic: '%dist_interrupt', restarts: [] },
      {
        label: 'Restart ranks 1-2',
        magic: '%dist_restart --ranks 1-2',
        restarts: [1, 2]
      }
    ],
    op: 'all_reduce #7',
    since: Date.now() / 1000 - 11
  };
  act(() =>
    stream.received.emit({
      type: 'usage',
      pools: { p1: [makeUsage(0), null, null] },
      verdicts: { p1: verdict }
    })
  );
  press('Restart rank 1…');
  expect(executed).toEqual([
    { id: CommandIDs.restartRanks, pool: 'p1', ranks: [1] }
  ]);
});

describe('a rank that is stopped', () => {
  const verdict = {
    kind: 'stopped',
    sentence:
      'Rank 1 does not respond: its process is stopped (SIGSTOP, a debugger).',
    hint: '',
    ranks: [1],
    stuck: true,
    remedies: [
      {
        label: 'Restart rank 1',
        magic: '%dist_restart --ranks 1',
        restarts: [1]
      }
    ],
    op: null,
    since: null
  };
  const pools = { p1: [makeUsage(0), makeUsage(1)] };

  it('is told of while nobody waits for it', () => {
    const stream = new FakeStream();
    const telemetry = new Telemetry(stream);
    show({ pool: makePool(), telemetry, waitLimit: 10 });
    expect(host.textContent).toContain('Running');
    act(() =>
      stream.received.emit({ type: 'usage', pools, verdicts: { p1: verdict } })
    );
    expect(host.textContent?.match(/Rank 1 does not respond/g)).toHaveLength(1);
    expect(host.textContent).toContain(verdict.sentence);
    expect(host.querySelector('.jp-dist-StatePill')?.textContent).toBe(
      '1 rank does not respond'
    );
    expect(
      [...host.querySelectorAll('.jp-dist-RankTile-state')].map(
        ({ textContent }) => textContent
      )
    ).toEqual([expect.stringContaining('idle'), 'does not respond']);
    press('Restart rank 1…');
    expect(executed).toEqual([
      { id: CommandIDs.restartRanks, pool: 'p1', ranks: [1] }
    ]);
    act(() => stream.received.emit({ type: 'usage', pools }));
    expect(host.textContent).toContain('Running');
    expect(host.textContent).not.toContain('respond');
  });

  it('is not told of the process that has replaced it', () => {
    const stream = new FakeStream();
    const telemetry = new Telemetry(stream);
    const ranks = [makeRank(0), makeRank(1, { pid: 77 })];
    show({ pool: makePool({ ranks }), telemetry, waitLimit: 10 });
    act(() =>
      stream.received.emit({ type: 'usage', pools, verdicts: { p1: verdict } })
    );
    expect(host.textContent).not.toContain('respond');
  });
});

it('says nothing of a wait any more once no rank is busy', () => {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  show({ pool: makePool(), telemetry, waitLimit: 10 });
  const verdict = {
    kind: 'not_joined_yet',
    sentence: 'Rank 0 waits in all_reduce #1.',
    hint: '',
    ranks: [1],
    stuck: false,
    remedies: [],
    op: 'all_reduce #1',
    since: Date.now() / 1000 - 20
  };
  act(() =>
    stream.received.emit({
      type: 'usage',
      pools: { p1: [makeUsage(0), makeUsage(1)] },
      verdicts: { p1: verdict }
    })
  );
  expect(host.textContent).not.toContain('joined');
});
