import { act } from 'react';

import type { IQueueRow } from '../model/queueContract';
import { CommandIDs } from '../model/tokens';
import { QueueSection, QueueSummary } from '../panel/queue/queueSection';
import { makeInventory } from './gpuSamples';
import { FakeQueue, makeJob, makeRow } from './queueSamples';
import { makePool } from './samples';
import type { IFakeModel } from './samples';
import { button, executed, host, press, show } from './screen';

const now = Date.now() / 1000;
const running = makeRow({
  id: '11',
  name: 'sweep',
  state: 'RUNNING',
  gpu_uuids: ['GPU-0', 'GPU-1'],
  since: now - 725,
  reason: '',
  detail: ''
});
const bobs = makeRow({ id: '11', user: 'bob', priority: null, gpus: 4 });

let queue: FakeQueue;

function showQueue(
  changes: Partial<FakeQueue>,
  others: Partial<IFakeModel> = {},
  Part = QueueSection as Parameters<typeof show>[1]
): void {
  queue = new FakeQueue({ rows: [], ended: [], ...changes });
  show({ queue, gpus: makeInventory(), ...others }, Part);
}

/** The two lines of each row. */
function rows(): string[][] {
  return [...host.querySelectorAll('li')].map(row =>
    [...row.children].map(({ children }) =>
      [...children].map(({ textContent }) => textContent).join(' | ')
    )
  );
}

/** The items of the menu that is open. */
function menuItems(): (string | null)[] {
  const items = document.querySelectorAll('.lm-Menu-itemLabel');
  return [...items].map(({ textContent }) => textContent);
}

describe('QueueSection', () => {
  it('says what a job is where there is none', () => {
    showQueue({});
    expect(host.textContent).toMatch(
      'A job is a command, a script or a notebook'
    );
    button('Submit a job…');
  });

  it('names a process that is stopped', () => {
    const notice = 'The dispatcher (pid 7) is stopped and starts no job.';
    showQueue({ rows: [makeRow()], notices: [notice] });
    expect(host.querySelector('.jp-mod-warn')?.textContent).toBe(notice);
  });

  it('shows what runs and what waits, and greys what others have', () => {
    const expected = { start: now + 60, certain: true };
    const held = makeRow({ id: '14', gpus: 0, reason: 'JobHeldUser' });
    showQueue({ rows: [running, bobs, makeRow({ expected }), held] });
    const time = new Date(1000 * expected.start);
    const moment = time.toLocaleTimeString([], {
      ...{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
    });
    expect(rows()).toEqual([
      ['11 sweep | GPUs 0–1 | ', 'Running 12 min'],
      ['bob · train.py | 4 GPUs', 'Waits for GPUs | #1'],
      ['12 train.py | 2 GPUs | ', `Waits for GPUs | #2 · by ${moment}`],
      ['14 train.py | CPU | ', 'Held']
    ]);
    const foreign = host.querySelectorAll('.jp-mod-foreign');
    expect([...foreign].map(row => row.getAttribute('aria-label'))).toEqual([
      'bob · train.py'
    ]);
    expect(
      host
        .querySelector('li:nth-child(3) [title*=Place]')
        ?.getAttribute('title')
    ).toBe('Place 2 in line.\nIt needs 2 GPUs; 1 is free.');
  });

  it('shows what is reserved, for whom and when', () => {
    const changes: Partial<IQueueRow> = {
      ...{ kind: 'reservation', priority: null, gpus: 2, name: 'tests' },
      ...{ user: 'ann', reason: 'Reservation' }
    };
    const expected = { start: now + 60, certain: true };
    showQueue({
      rows: [
        makeRow({ ...changes, id: 'r1', expected }),
        makeRow({ ...changes, id: 'r2', user: '', state: 'RUNNING' })
      ]
    });
    expect(rows()).toEqual([
      ['ann · tests | 2 GPUs', expect.stringMatching(/^Reservation \| from /)],
      ['Reserved · tests | 2 GPUs', 'Reservation']
    ]);
  });

  it('tells pools of this server from those of others', () => {
    const changes: Partial<IQueueRow> = {
      kind: 'pool',
      state: 'RUNNING',
      priority: null,
      gpus: 1,
      name: 'deep/plot.ipynb',
      idle_since: now - 7300
    };
    showQueue(
      {
        rows: [
          makeRow({ ...changes, id: 'p1' }),
          makeRow({ ...changes, id: 'p2' })
        ]
      },
      { pools: new Map([['p1', makePool()]]) }
    );
    expect(rows()).toEqual([
      ['plot.ipynb | 1 GPU | ', 'Idle 2 h'],
      ['alice · plot.ipynb | 1 GPU', 'Idle 2 h']
    ]);
    expect(host.textContent).toMatch('A job is a command');
    // To park and to stop it.
    press('Menu of plot.ipynb');
    expect(menuItems()).toHaveLength(2);
    document
      .querySelector('.lm-Menu')
      ?.dispatchEvent(new KeyboardEvent('keydown', { keyCode: 27 }));
    expect(menuItems()).toHaveLength(0);
  });

  it('selects a job no longer once it has ended', () => {
    showQueue({ rows: [makeRow()], ended: [] });
    const isSelected = () => button('12 train.py').getAttribute('aria-pressed');
    const space = new KeyboardEvent('keyup', { key: ' ', bubbles: true });
    act(() => {
      button('12 train.py').dispatchEvent(space);
    });
    expect(isSelected()).toBe('true');
    act(() => queue.tell({ rows: [], ended: [makeJob()] }));
    press('Ended in the last 24 h1');
    expect(isSelected()).toBe('false');
  });

  it('opens a menu for one job, or for all that are selected', () => {
    showQueue({ rows: [running, makeRow()], ended: [] });
    press('Menu of 12 train.py');
    expect(button('Menu of 12 train.py').getAttribute('aria-expanded')).toBe(
      'true'
    );
    expect(menuItems()).toHaveLength(9);
    for (const name of ['11 sweep', '12 train.py']) {
      const click = new MouseEvent('click', { bubbles: true, ctrlKey: true });
      act(() => {
        button(name).dispatchEvent(click);
      });
    }
    expect(button('12 train.py').getAttribute('aria-pressed')).toBe('true');
    const escape = new KeyboardEvent('keydown', {
      key: 'Escape',
      bubbles: true
    });
    act(() => {
      button('12 train.py').dispatchEvent(escape);
    });
    expect(button('12 train.py').getAttribute('aria-pressed')).toBe('false');
    const space = new KeyboardEvent('keyup', { key: ' ', bubbles: true });
    act(() => {
      button('12 train.py').dispatchEvent(space);
    });
    expect(button('12 train.py').getAttribute('aria-pressed')).toBe('true');
    expect(executed).toEqual([]);
    press('12 train.py');
    expect(executed).toEqual([{ id: CommandIDs.openJob, job: '12' }]);
  });

  it('has own jobs dragged to another place in line', () => {
    const third = makeRow({ id: '15' });
    const held = makeRow({ id: '14', reason: 'JobHeldUser' });
    showQueue({ rows: [running, makeRow(), bobs, third, held] });
    const row = (name: string) =>
      host.querySelector(`li[aria-label="${name}"]`) as HTMLElement;
    const drag = (type: string, on: HTMLElement) => {
      const event = new Event(type, { bubbles: true, cancelable: true });
      const dataTransfer = { setData: jest.fn() };
      act(() => {
        on.dispatchEvent(Object.assign(event, { dataTransfer }));
      });
      return event.defaultPrevented;
    };
    expect(
      [...host.querySelectorAll('[draggable]')].map(row =>
        row.getAttribute('aria-label')
      )
    ).toEqual(['12 train.py', '15 train.py']);
    drag('dragstart', row('15 train.py'));
    expect(drag('dragover', row('11 sweep'))).toBe(false);
    expect(drag('dragover', row('12 train.py'))).toBe(true);
    expect(row('12 train.py').className).toMatch('jp-mod-dropBefore');
    drag('drop', row('12 train.py'));
    expect(queue.move.mock.calls).toEqual([['15', 0]]);
    expect(host.innerHTML).not.toMatch(/jp-mod-d(rop|ragged)/);
  });

  it('folds what has ended, and says how', () => {
    const jobs = [
      makeJob({ ended: now }),
      makeJob({ id: 2, label: '2', state: 'FAILED', exit_code: 1 }),
      makeJob({ id: 3, label: '3', state: 'FAILED', exit_signal: 9 }),
      makeJob({ id: 4, label: '4', state: 'TIMEOUT', started: null })
    ];
    showQueue({ ended: jobs });
    expect(rows()).toEqual([]);
    expect(host.textContent).not.toMatch('A job is');
    press('Ended in the last 24 h4');
    expect(rows().map(([, state]) => state)).toEqual([
      expect.stringMatching(/^COMPLETED \| /),
      'FAILED exit code 1 | 1 min',
      'FAILED signal 9 | 1 min',
      'TIMEOUT | '
    ]);
    press('Ended in the last 24 h4');
    expect(rows()).toEqual([]);
  });

  it('says why the queue cannot be read, and what went wrong', () => {
    const error = {
      code: 'queue_unusable',
      message: 'Broken.',
      hint: 'Move it.'
    };
    showQueue({ error, rows: null });
    expect(host.querySelector('[role=alert]')?.textContent).toBe(
      'Broken.Move it.Check again'
    );
    press('Check again');
    expect(queue.reload).toHaveBeenCalled();
    showQueue({ actionError: error });
    expect(host.querySelector('[role=alert]')?.textContent).toMatch('Broken.');
    press('Dismiss');
    expect(queue.dismissError).toHaveBeenCalled();
  });

  it('shows many only when asked to', () => {
    const many = Array.from({ length: 60 }, (_, id) =>
      makeRow({ id: `${id}` })
    );
    showQueue({ rows: many });
    expect(rows()).toHaveLength(50);
    press('Show 10 more');
    expect(rows()).toHaveLength(60);
  });
});

describe('QueueSummary', () => {
  it.each([
    [[], ''],
    [[running], '1 running'],
    [[makeRow(), bobs], '2 waiting'],
    [[running, makeRow()], '1 running · 1 waiting']
  ])('counts jobs', (rows, text) => {
    showQueue({ rows }, {}, QueueSummary);
    expect(host.textContent).toBe(text);
  });
});
