import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';

import type { IQueueModel } from '../../model/queue';
import { isHeld, isOwnJob, ownLine } from '../../model/queueContract';
import type { JobAction } from '../../model/queueContract';
import { CommandIDs, IPoolsModel, SETTINGS_ID } from '../../model/tokens';
import { trans } from '../../model/trans';
import { ask } from '../../ui/dialogs';
import { joinSentences } from '../../words/format';
import { JobNotices } from './notices';
import type { INewsWanted } from './notices';

/** What can be done with own jobs, and the news of them. */
export const queuePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-server:queue',
  description:
    'Adds commands for jobs, and notifications of their starts and ends.',
  autoStart: true,
  requires: [IPoolsModel],
  optional: [ISettingRegistry],
  activate: (
    { commands }: JupyterFrontEnd,
    { queue }: IPoolsModel,
    registry: ISettingRegistry | null
  ): void => {
    const add = (
      id: string,
      action: JobAction,
      label: (count: number) => string,
      mayDo: (jobs: string[]) => Promise<boolean> = () => Promise.resolve(true)
    ) => {
      const jobsFor = (args: Args) => choose(action, args, queue);
      commands.addCommand(id, {
        label: args => label(jobsFor(args).length),
        isVisible: args => jobsFor(args).length > 0,
        execute: async args => {
          const jobs = jobsFor(args);
          if (jobs.length && (await mayDo(jobs))) {
            await queue.act(action, jobs);
          }
        }
      });
    };
    add(CommandIDs.holdJobs, 'hold', count =>
      trans._n('Hold', 'Hold %1 Jobs', count)
    );
    add(CommandIDs.releaseJobs, 'release', count =>
      trans._n('Release', 'Release %1 Jobs', count)
    );
    add(CommandIDs.requeueJobs, 'requeue', count =>
      trans._n('Requeue', 'Requeue %1 Jobs', count)
    );
    add(
      CommandIDs.cancelJobs,
      'cancel',
      count => trans._n('Cancel…', 'Cancel %1 Jobs…', count),
      async jobs =>
        !jobs.some(job => runs(job, queue)) ||
        ask(
          trans._n('Cancel job %2?', 'Cancel %1 jobs?', jobs.length, jobs[0]),
          sayCancel(jobs, queue),
          trans._n('Cancel Job', 'Cancel Jobs', jobs.length),
          trans.__('Keep')
        )
    );

    const placeOf = (job: unknown) =>
      ownLine(queue.rows ?? []).findIndex(({ id }) => id === job);
    commands.addCommand(CommandIDs.moveJob, {
      label: ({ by }) =>
        Number(by) < 0 ? trans.__('Move Up') : trans.__('Move Down'),
      caption: trans.__('Change the order in which your jobs start.'),
      isVisible: ({ job }) => placeOf(job) >= 0,
      isEnabled: ({ job, by }) => {
        const place = placeOf(job) + Number(by);
        return place >= 0 && place < ownLine(queue.rows ?? []).length;
      },
      execute: ({ job, by }) =>
        queue.move(String(job), placeOf(job) + Number(by))
    });

    void follow(registry, queue, new JobNotices(queue, commands));
  }
};

type Args = ReadonlyPartialJSONObject;

/** Those of the named jobs to which an action does something. */
function choose(
  action: JobAction,
  { jobs }: Args,
  queue: IQueueModel
): string[] {
  const labels = Array.isArray(jobs) ? (jobs as string[]) : [];
  return labels.filter(label => {
    if (action === 'requeue') {
      return queue.ended?.some(job => job.label === label) ?? false;
    }
    const row = findRow(label, queue);
    const waits = row?.state === 'PENDING';
    return action === 'cancel'
      ? row !== undefined
      : waits && isHeld(row) === (action === 'release');
  });
}

/** Which jobs run and are ended, and which wait. */
function sayCancel(jobs: string[], queue: IQueueModel): string {
  const name = (label: string) =>
    trans.__('%1 (%2)', label, findRow(label, queue)?.name ?? '');
  const running = jobs.filter(job => runs(job, queue));
  const waiting = jobs.filter(job => !running.includes(job));
  return joinSentences([
    trans._n(
      'Job %2 is running and is ended, at the latest after its grace time.',
      'Jobs %2 are running and are ended, at the latest after their grace time.',
      running.length,
      running.map(name).join(', ')
    ),
    waiting.length > 0
      ? trans._n(
          'Job %2 has not started.',
          'Jobs %2 have not started.',
          waiting.length,
          waiting.map(name).join(', ')
        )
      : ''
  ]);
}

function runs(label: string, queue: IQueueModel): boolean {
  const row = findRow(label, queue);
  return row !== undefined && row.state !== 'PENDING';
}

function findRow(label: string, { rows }: IQueueModel) {
  return rows?.find(row => isOwnJob(row) && row.id === label);
}

/** Jobs are followed while the user wants to hear of them, or to see their notebooks. */
async function follow(
  registry: ISettingRegistry | null,
  queue: IQueueModel,
  notices: JobNotices
): Promise<void> {
  let watching: IDisposable | null = null;
  const settings = await registry?.load(SETTINGS_ID);
  const apply = () => {
    if (settings) {
      notices.wanted = {
        news: settings.get('jobNotifications').composite as INewsWanted['news'],
        opensNotebooks: settings.get('openJobNotebooks').composite === true
      };
    }
    const { news, opensNotebooks } = notices.wanted;
    if (news === 'none' && !opensNotebooks) {
      watching?.dispose();
      watching = null;
    } else {
      watching ??= queue.watch('ends');
    }
  };
  settings?.changed.connect(apply);
  apply();
}
