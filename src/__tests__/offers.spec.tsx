import { Notification } from '@jupyterlab/apputils';

import type { IInLine, IOffer } from '../model/contract';
import { setServerTime } from '../model/serverTime';
import { CommandIDs } from '../model/tokens';
import { OtherPools } from '../panel/others/otherPools';
import { notifyWhenReady } from '../panel/readyNotice';
import { poolState } from '../words/poolWords';
import { partsOf, sayOffer } from '../words/lineWords';
import { failure, makeParking, parked } from './parkSamples';
import { emitChanged, makeModel, makePool, makeRank } from './samples';
import { button, executed, host, press, show } from './screen';

function makeError(offers: IOffer[]) {
  return {
    code: 'gpus_taken',
    message: 'GPU 1 is leased by bob.',
    hint: 'Wait with --wait.',
    offers,
    choice: { num_ranks: 4, gpu_ids: [0, 1], env: { A: 'b' } }
  };
}

describe('a start on GPUs that are taken', () => {
  it('has a button for each thing that can be done instead', () => {
    show({
      error: makeError([
        { kind: 'wait' },
        { kind: 'free', gpu_ids: [2, '3:1'] },
        { kind: 'share' },
        { kind: 'job', gpus: 2 }
      ])
    });
    expect(host.textContent).not.toMatch('--wait');
    press('Wait');
    press('Start on GPUs 2, 3:1');
    press('Share the GPUs');
    press('Run as Job…');
    const id = CommandIDs.startPool;
    const choice = { num_ranks: 4, gpu_ids: [0, 1], env: { A: 'b' } };
    expect(executed).toEqual([
      { id, choice: { ...choice, wait: true } },
      { id, choice: { ...choice, gpu_ids: [2, '3:1'], num_ranks: 2 } },
      {
        id,
        choice: { ...choice, oversubscribe: true, one_rank_per_gpu: false }
      },
      { id: CommandIDs.runNotebookAsJob, gpus: 2 }
    ]);
  });

  it('says in short that there is none, and below it who has which, in one alert', () => {
    const message =
      'No GPU is free: GPUs 0, 1 are leased by ada (pool p-1 of a.ipynb, since 22:32); GPU 6 is used by python, pid 7.';
    show({ error: { ...makeError([]), message } });
    const alert = host.querySelector('[role=alert]');
    expect(alert?.querySelector('.jp-dist-error')?.textContent).toBe(
      'No GPU is free.'
    );
    expect(
      [...(alert?.querySelectorAll('li') ?? [])].map(li => li.textContent)
    ).toEqual([
      'GPUs 0, 1 are leased by ada (pool p-1 of a.ipynb, since 22:32)',
      'GPU 6 is used by python, pid 7'
    ]);
  });

  it('says of chosen GPUs who has them', () => {
    const parts = (message: string) => partsOf({ ...makeError([]), message });
    expect(parts('GPU 1 is leased by bob.')).toEqual({
      head: 'GPU 1 is leased by bob.',
      parts: []
    });
    expect(parts('GPU 1 is leased by bob; GPU 2 is used by eve.')).toEqual({
      head: 'These GPUs are not free.',
      parts: ['GPU 1 is leased by bob', 'GPU 2 is used by eve']
    });
  });

  it('offers nothing while a request is on its way', () => {
    show({ error: makeError([{ kind: 'wait' }]), isPending: true });
    expect(button('Wait').disabled).toBe(true);
    expect(button('Dismiss').disabled).toBe(false);
  });

  it('says when the wait would end, unless that is over', () => {
    const at = new Date(2026, 10, 23, 14, 0).getTime() / 1000;
    const say = (line: IInLine) => sayOffer({ kind: 'wait', line }, at);
    const soon = { place: 3, expected: at + 1200, certain: true };
    expect(say(soon)).toBe('Wait (#3 in line, by 14:20)');
    expect(say({ ...soon, certain: false })).toBe(
      'Wait (#3 in line, about 14:20)'
    );
    expect(say({ ...soon, expected: at - 1 })).toBe('Wait (#3 in line)');
    expect(say({ ...soon, expected: null })).toBe('Wait (#3 in line)');
    const free = { kind: 'free', gpu_ids: [1, 2, 3, 4, 5] } as const;
    expect(sayOffer({ ...free, gpu_ids: [1] }, at)).toBe('Start on GPU 1');
    expect(sayOffer({ ...free, gpu_ids: [1, 2, 3, 4, 5] }, at)).toBe(
      'Start on the 5 free GPUs'
    );
  });
});

const WAITING = {
  phase: 'waiting for GPUs',
  ready: 0,
  reason: 'GPU 1 is leased by bob.',
  line: { place: 2, expected: null, certain: false }
};

describe('a pool that waits for GPUs', () => {
  it('shows its place, who has the GPUs, and can be cancelled', () => {
    const pool = makePool({ state: 'PENDING', progress: WAITING, ranks: [] });
    show({ pool });
    expect(host.querySelector('[role=status]')?.textContent).toBe(
      'Waiting for GPUs'
    );
    expect(host.textContent).toMatch('#2 in line');
    expect(host.textContent).toMatch('GPU 1 is leased by bob.');
    expect(poolState(pool)?.words).toBe('#2 in line');
    press('Cancel');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p1' }]);
  });

  it('has no number of ranks yet if that is left to the server', () => {
    const waiting = { progress: WAITING, ranks: [], world_size: 0 };
    const pool = makePool({
      ...{ ...waiting, state: 'PENDING' },
      ...{ kernel_id: 'k2', attachments: [] }
    });
    show({ pools: new Map([['p1', pool]]) }, OtherPools);
    expect(host.textContent).not.toMatch(/\b0\b/);
  });

  it('is told of once when it is ready', () => {
    const model = makeModel();
    const open = jest.fn();
    notifyWhenReady(model, open);
    const tell = (changes: object) => {
      const pool = makePool(changes);
      Object.assign(model, { pools: new Map([['p1', pool]]) });
      emitChanged(model);
    };
    const told = () => Notification.manager.notifications;
    tell({ state: 'RUNNING' });
    expect(told()).toHaveLength(0);
    tell({ state: 'PENDING', progress: WAITING });
    tell({ state: 'CONFIGURING' });
    tell({ state: 'RUNNING' });
    tell({ state: 'RUNNING' });
    expect(told().map(({ message }) => message)).toEqual([
      'The GPUs are free: 2 ranks of train.ipynb are ready.'
    ]);
    told()[0].options.actions?.[0].callback({} as MouseEvent);
    expect(open).toHaveBeenCalled();
  });

  it('is told of once it is resumed, unless it stays parked or a rank is lost', () => {
    Notification.dismiss();
    const model = makeModel();
    notifyWhenReady(model, jest.fn());
    const line = { place: 1, expected: null, certain: false };
    const waits = {
      state: 'SUSPENDED',
      parked,
      parking: makeParking({ line })
    };
    const comes = {
      parked: { ...parked, leased: true },
      parking: makeParking()
    };
    const tell = (...all: object[]) => {
      for (const changes of all) {
        const pool = makePool(changes);
        Object.assign(model, { pools: new Map([['p1', pool]]) });
        emitChanged(model);
      }
      return Notification.manager.notifications.length;
    };
    expect(tell(waits, { state: 'SUSPENDED', parked }, {})).toBe(0);
    expect(tell(waits, comes, { parking: makeParking({ failure }) })).toBe(0);
    expect(tell(waits, comes)).toBe(0);
    expect(tell({}, {})).toBe(1);
  });
});

describe('a pool that has been idle for long', () => {
  const gpu = { index: 3, label: '3', uuid: 'GPU-3', name: 'H100' };
  const now = Date.now() / 1000;
  const idle = (seconds: number) => {
    setServerTime(now);
    return makePool({
      idle_since: now - seconds,
      ranks: [makeRank(0, { gpu }), makeRank(1, { gpu })]
    });
  };

  it('can be released', () => {
    show({ pool: idle(3 * 3600 + 5) });
    expect(host.textContent).toMatch('GPU 3 has been idle for 3 h');
    press('Release…');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p1' }]);
  });

  it('is not spoken of at first', () => {
    show({ pool: idle(60) });
    expect(host.textContent).not.toMatch('has been idle');
  });

  it('can be released among the other pools, too', () => {
    const pool = { ...idle(2 * 3600 + 5), kernel_id: 'k2', attachments: [] };
    show({ pools: new Map([['p1', pool]]) }, OtherPools);
    press('Release…');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p1' }]);
  });
});
