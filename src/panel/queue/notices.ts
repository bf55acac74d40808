import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import type { IQueueModel } from '../../model/queue';
import type { IJob, IJobEvent } from '../../model/queueContract';
import { CommandIDs } from '../../model/tokens';
import { nameJob, sayEnd } from '../../words/queueWords';

/** More jobs at a time are told of in one sentence. */
const MOST = 3;
/** Seconds that a job has waited whose start is news. */
const WAITED = 15;
/** Milliseconds for which good news are shown. */
const SHOWN = 10_000;

/** Of which jobs the user wants to hear, and what is opened by itself. */
export interface INewsWanted {
  news: 'all' | 'ends' | 'failures' | 'none';
  opensNotebooks: boolean;
}

/**
 * Tell of own jobs that start or end while the page is open.
 */
export class JobNotices {
  constructor(
    private readonly _queue: IQueueModel,
    private readonly _commands: CommandRegistry,
    private readonly _trans: TranslationBundle
  ) {
    _queue.changed.connect(this._onChanged, this);
    _queue.happened.connect(this._onHappened, this);
  }

  wanted: INewsWanted = { news: 'all', opensNotebooks: false };

  private _onHappened(_: unknown, events: readonly IJobEvent[]): void {
    const trans = this._trans;
    const started: IJobEvent[] = [];
    for (const event of events) {
      if (event.state === 'PENDING') {
        this._queued.set(event.job, event.at);
      } else if (event.state === 'RUNNING') {
        // Of those that came before this page it is not known since when they wait.
        const since = this._queued.get(event.job) ?? -Infinity;
        if (event.at - since > WAITED) {
          started.push(event);
        }
        this._queued.delete(event.job);
      }
    }
    if (this.wanted.news !== 'all') {
      return;
    }
    if (started.length > MOST) {
      this._tell(trans.__('%1 jobs have started.', started.length), null);
    } else {
      for (const { label, name } of started) {
        const job = nameJob(label, name);
        this._tell(trans.__('Job %1 has started.', job), label);
      }
    }
  }

  private _onChanged(): void {
    const { ended } = this._queue;
    if (!ended || ended === this._last) {
      return;
    }
    // Those at first had ended before.
    const known = this._known;
    const news = known ? ended.filter(job => !known.has(keyOf(job))) : [];
    this._known = new Set([...(known ?? []), ...ended.map(keyOf)]);
    this._last = ended;
    const { news: wanted, opensNotebooks } = this.wanted;
    const told = news.filter(job =>
      wanted === 'failures'
        ? isFailure(job)
        : // Who cancels what has not started needs no news of it.
          wanted !== 'none' &&
          (job.state !== 'CANCELLED' || job.started !== null)
    );
    if (told.length > MOST) {
      const failed = told.filter(isFailure).length;
      const words = this._trans.__(
        '%1 jobs ended, %2 failed.',
        told.length,
        failed
      );
      this._tell(words, null, failed > 0);
    } else {
      for (const job of told) {
        const words = sayEnd(job, this._trans);
        this._tell(words, job.label, isFailure(job), hasNotebook(job));
      }
    }
    if (opensNotebooks) {
      for (const { label } of news.filter(hasNotebook)) {
        void this._commands.execute(CommandIDs.openJobNotebook, { job: label });
      }
    }
  }

  private _tell(
    words: string,
    job: string | null,
    isBad = false,
    hasNotebook = false
  ): void {
    const trans = this._trans;
    const action = (label: string, command: string): Notification.IAction => ({
      label,
      callback: () => void this._commands.execute(command, { job })
    });
    const actions = [
      job === null
        ? action(trans.__('Show Queue'), CommandIDs.showQueue)
        : action(trans.__('Show Details'), CommandIDs.openJob)
    ];
    if (hasNotebook) {
      actions.push(
        action(trans.__('Open Notebook'), CommandIDs.openJobNotebook)
      );
    }
    // A failure stays until it is read.
    if (isBad) {
      Notification.error(words, { autoClose: false, actions });
    } else {
      Notification.info(words, { autoClose: SHOWN, actions });
    }
  }

  private _known: ReadonlySet<string> | null = null;
  private _last: readonly IJob[] | null = null;
  /** When jobs that wait were queued, by id. */
  private readonly _queued = new Map<number, number>();
}

function keyOf({ id, attempt }: IJob): string {
  return `${id} ${attempt}`;
}

function isFailure({ state }: IJob): boolean {
  return state !== 'COMPLETED' && state !== 'CANCELLED';
}

function hasNotebook({ spec, started }: IJob): boolean {
  return Boolean(spec.notebook) && started !== null;
}
