import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';

import { JobNotices } from '../panel/queue/notices';
import type { INewsWanted } from '../panel/queue/notices';
import { queuePlugin } from '../panel/queue/plugin';
import { ENDED } from '../model/queueContract';
import type { IJob, IJobEvent, JobState } from '../model/queueContract';
import { CommandIDs } from '../model/tokens';
import { FakeQueue, makeJob, makeRow, makeTasks } from './queueSamples';
import { dialog, dialogSays, makeModel, until } from './samples';

describe('the commands of the queue', () => {
  let commands: CommandRegistry;
  let queue: FakeQueue;
  const shown = jest.fn();
  const jobs = ['11', '12', '13', '9'];
  const { holdJobs, releaseJobs, cancelJobs, requeueJobs } = CommandIDs;

  beforeEach(async () => {
    queue = new FakeQueue({
      rows: [
        makeRow({ id: '11', state: 'RUNNING' }),
        makeRow({ id: '12' }),
        makeRow({ id: '13', reason: 'JobHeldFailures' }),
        makeRow({ id: '9', user: 'bob', priority: null })
      ],
      ended: [makeJob({ id: 9, label: '9' })]
    });
    commands = new CommandRegistry();
    for (const id of [
      CommandIDs.showQueue,
      CommandIDs.openJob,
      CommandIDs.openJobNotebook
    ]) {
      commands.addCommand(id, { execute: ({ job }) => shown(id, job) });
    }
    const app = { commands } as unknown as JupyterFrontEnd;
    const model = makeModel({ queue });
    await queuePlugin.activate(app, model, null);
    await until(() => queue.watched.length > 0);
    expect(queue.watched).toEqual(['ends']);
  });

  it('do something only where it is of use', async () => {
    const labels = [holdJobs, releaseJobs, cancelJobs, requeueJobs].map(id =>
      commands.label(id, { jobs })
    );
    expect(labels).toEqual(['Hold', 'Release', 'Cancel 3 Jobs…', 'Requeue']);
    expect(commands.isVisible(holdJobs, { jobs: ['11'] })).toBe(false);
    expect(commands.isVisible(cancelJobs, { jobs: ['9'] })).toBe(false);
    expect(commands.isVisible(cancelJobs, {})).toBe(false);
    await commands.execute(holdJobs, { jobs });
    await commands.execute(releaseJobs, { jobs });
    await commands.execute(requeueJobs, { jobs });
    // What has not started is not lost.
    await commands.execute(cancelJobs, { jobs: ['12'] });
    expect(queue.act.mock.calls).toEqual([
      ['hold', ['12']],
      ['release', ['13']],
      ['requeue', ['9']],
      ['cancel', ['12']]
    ]);
  });

  it('move own jobs in line', async () => {
    const rows = ['1', '2', '3'].map(id => makeRow({ id }));
    queue.tell({ rows: [...(queue.rows ?? []), ...rows] });
    const { moveJob } = CommandIDs;
    const isOf = (job: string, by: number) => [
      commands.isVisible(moveJob, { job, by }),
      commands.isEnabled(moveJob, { job, by })
    ];
    // Job 12 is the first in line; 13 is held, 11 runs, 9 is somebody else's.
    expect(isOf('12', -1)).toEqual([true, false]);
    expect(isOf('12', 1)).toEqual([true, true]);
    expect(isOf('3', 1)).toEqual([true, false]);
    for (const job of ['11', '13', '9']) {
      expect(isOf(job, 1)[0]).toBe(false);
    }
    await commands.execute(moveJob, { job: '3', by: -1 });
    expect(queue.move.mock.calls).toEqual([['3', 2]]);
  });

  it('ask before something that runs is ended', async () => {
    for (const [answer, calls] of [
      ['Keep', 0],
      ['Cancel Job', 1]
    ] as const) {
      const done = commands.execute(cancelJobs, { jobs: ['11'] });
      await dialogSays('Cancel job 11?');
      expect(dialog()?.textContent).toContain('Job 11 (');
      const buttons = [...(dialog()?.querySelectorAll('button') ?? [])];
      buttons.find(({ textContent }) => textContent === answer)?.click();
      await done;
      expect(queue.act).toHaveBeenCalledTimes(calls);
    }
  });

  it('tell of what ends while the page is open', () => {
    const told = () =>
      Notification.manager.notifications.map(({ message }) => message);
    const end = (...news: ReturnType<typeof makeJob>[]) =>
      queue.tell({ ended: [...news, ...(queue.ended ?? [])] });
    queue.tell({ ended: [makeJob({ id: 1 })] });
    expect(told()).toEqual([]);
    end(makeJob({ id: 2, label: '2' }));
    const detail = 'It ended with exit code 1.';
    end(makeJob({ id: 3, label: '3', state: 'FAILED', detail }));
    // It was cancelled before it started.
    end(makeJob({ id: 4, state: 'CANCELLED', started: null }));
    expect(told().sort()).toEqual([
      'Job 2 train.py has completed.',
      'Job 3 train.py failed: It ended with exit code 1.'
    ]);
    Notification.manager.notifications[0].options.actions?.[0].callback(
      {} as MouseEvent
    );
    expect(shown.mock.calls).toEqual([[CommandIDs.openJob, '3']]);
    Notification.dismiss();
    end(...[5, 6, 7, 8].map(id => makeJob({ id, state: 'TIMEOUT' })));
    expect(told()).toEqual(['4 jobs ended, 4 failed.']);
    Notification.dismiss();
    // Another end of the same job.
    const spec = { notebook: 'train.ipynb' };
    end(makeJob({ id: 2, label: '2', attempt: 2, spec }));
    expect(told()).toHaveLength(1);
    const { actions } = Notification.manager.notifications[0].options;
    expect(actions?.map(({ label }) => label)).toEqual([
      'Show Details',
      'Open Notebook'
    ]);
    Notification.dismiss();
  });

  it('tell of no end from before the page was opened, for which the list had no room', () => {
    queue.tell({ ended: [makeJob({ id: 5, ended: 200 })] });
    // Job 5 is queued again.
    queue.tell({ ended: [makeJob({ id: 4, ended: 190 })] });
    expect(Notification.manager.notifications).toEqual([]);
  });

  it('tell of an array in one notification', async () => {
    const told = () =>
      Notification.manager.notifications.map(
        ({ message, type }) => `${type}: ${message}`
      );
    const task = (index: number, changes: Partial<IJob> = {}) =>
      makeJob({ id: index, label: `40_${index}`, ...changes });
    const end = (tasks: IJob[], ...others: IJob[]) => {
      queue.requests.tasks.mockResolvedValueOnce(makeTasks(tasks));
      const ended = tasks.filter(({ state }) => ENDED.includes(state));
      queue.tell({ ended: [...ended, ...others] });
    };
    queue.tell({ ended: [] });
    const runs = task(1, { state: 'RUNNING' });
    const waits = task(2, { state: 'PENDING' });
    end([task(0), runs, waits]);
    const progress = 'Job 40 train.py: 1 of 3 tasks completed, 1 running.';
    await until(() => told().length > 0);
    expect(told()).toEqual([`info: ${progress}`]);
    const detail = 'It ended with exit code 1.';
    const fails = task(1, { state: 'FAILED', detail });
    end([task(0), fails, task(2)], makeJob({ id: 9, label: '9' }));
    const failure = `Job 40_1 failed: ${detail}`;
    await until(() => told().some(words => words.includes(failure)));
    expect(told().sort()).toEqual([
      `error: Job 40 train.py: 2 of 3 tasks completed. ${failure}`,
      'info: Job 9 train.py has completed.'
    ]);
    expect(queue.requests.tasks.mock.calls).toEqual([['40'], ['40']]);
    Notification.dismiss();
  });

  it('count all tasks of an array, also those that the server does not list', async () => {
    queue.tell({ ended: [] });
    const name = 'train_a_resnet_of_152_layers_on_imagenet.py';
    const detail = 'It ended with exit code 1.';
    const failed = makeJob({ label: '40_1400', name, state: 'FAILED', detail });
    queue.requests.tasks.mockResolvedValueOnce(
      makeTasks([makeJob({ label: '40_0', name })], {
        count: 1500,
        states: { COMPLETED: 1200, RUNNING: 8, FAILED: 2, PENDING: 290 },
        last_failure: failed
      })
    );
    queue.tell({ ended: [failed] });
    await until(() => Notification.manager.notifications.length > 0);
    const [{ message, options }] = Notification.manager.notifications;
    expect(message).toBe(
      'Job 40 train_a_resnet_of_152_layers_…: 1200 of 1500 tasks completed, ' +
        '8 running. 2 tasks failed. Job 40_1400 failed: It ended with exit code 1.'
    );
    // JupyterLab drops the rest; what failed is said before.
    expect(message.slice(0, 140)).toContain('Job 40_1400 failed: It ended');
    options.actions?.[0].callback({} as MouseEvent);
    expect(shown).toHaveBeenLastCalledWith(CommandIDs.openJob, '40_1400');
    Notification.dismiss();
  });

  it('say how a job with a long name ended', () => {
    queue.tell({ ended: [] });
    const name = 'a'.repeat(150);
    const detail = 'Rank 3 ended with exit code 1.';
    queue.tell({ ended: [makeJob({ name, state: 'FAILED', detail })] });
    const [{ message }] = Notification.manager.notifications;
    expect(message).toBe(`Job 12 ${'a'.repeat(29)}… failed: ${detail}`);
    Notification.dismiss();
  });

  it('open the notebooks of what ends, of whatever is told', () => {
    const notices = new JobNotices(queue, commands);
    queue.tell({ ended: [] });
    const spec = { notebook: 'train.ipynb' };
    const end = (news: INewsWanted['news'], ids: number[]) => {
      shown.mockClear();
      notices.wanted = { news, opensNotebooks: true };
      queue.tell({
        ended: ids.map(id => makeJob({ id, label: `${id}`, spec }))
      });
      return shown.mock.calls.map(([, job]) => job as string);
    };
    expect(end('none', [1])).toEqual(['1']);
    expect(end('failures', [2])).toEqual(['2']);
    expect(end('ends', [3, 4, 5, 6])).toEqual(['3', '4', '5', '6']);
    Notification.dismiss();
  });

  it('tell of what starts after it has waited', () => {
    const event = (job: number, state: JobState, at: number): IJobEvent => ({
      ...{ job, state, at, seq: job, label: `${job}`, name: '' },
      ...{ was: null, reason: '' }
    });
    queue.happened.emit([event(20, 'PENDING', 100), event(21, 'PENDING', 100)]);
    queue.happened.emit([event(20, 'RUNNING', 101)]);
    queue.happened.emit([event(21, 'RUNNING', 200), event(1, 'RUNNING', 200)]);
    const told = Notification.manager.notifications;
    expect(told.map(({ message }) => message).sort()).toEqual([
      'Job 1 has started.',
      'Job 21 has started.'
    ]);
    Notification.dismiss();
  });
});
