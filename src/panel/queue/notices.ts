import { Notification } from '@jupyterlab/apputils';
import type { CommandRegistry } from '@lumino/commands';

import type { IQueueModel } from '../../model/queue';
import { arrayOf, isFailure } from '../../model/queueContract';
import type { IJob, IJobEvent, ITasks } from '../../model/queueContract';
import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { cutName, nameJob, sayArray, sayEnd } from '../../words/queueWords';
import { ArrayNotice } from './arrayNotice';
import type { IArrayNews } from './arrayNotice';

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

/** Tell of own jobs that start or end while the page is open. */
export class JobNotices {
  constructor(
    private readonly _queue: IQueueModel,
    private readonly _commands: CommandRegistry
  ) {
    _queue.changed.connect(this._onChanged, this);
    _queue.happened.connect(this._onHappened, this);
  }

  wanted: INewsWanted = { news: 'all', opensNotebooks: false };

  private _onHappened(_: unknown, events: readonly IJobEvent[]): void {
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
    const single = this._tellOfArrays(started);
    if (single.length > MOST) {
      this._tell(trans.__('%1 jobs have started.', single.length), null);
    } else {
      for (const { label, name } of single) {
        const job = nameJob(label, cutName(name));
        this._tell(trans.__('Job %1 has started.', job), label);
      }
    }
  }

  private _onChanged(): void {
    const { ended } = this._queue;
    if (!ended || ended === this._last) {
      return;
    }
    // Those at first had ended before, and older ones, for which the list had no room.
    const known = this._known;
    const first = (this._firstEnd ??= ended.at(-1)?.ended ?? 0);
    const news = ended.filter(
      job => known && !known.has(keyOf(job)) && (job.ended ?? 0) >= first
    );
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
    const single = this._tellOfArrays(told);
    if (single.length > MOST) {
      const failed = single.filter(isFailure).length;
      const words = trans.__(
        '%1 jobs ended, %2 failed.',
        single.length,
        failed
      );
      this._tell(words, null, failed > 0);
    } else {
      for (const job of single) {
        const name = cutName(job.name);
        const words = sayEnd({ ...job, name });
        this._tell(words, job.label, isFailure(job), hasNotebook(job));
      }
    }
    if (opensNotebooks) {
      for (const { label } of news.filter(hasNotebook)) {
        void this._commands.execute(CommandIDs.openJobNotebook, { job: label });
      }
    }
  }

  /** Update the notices of the arrays among them; the other jobs are returned. */
  private _tellOfArrays<T extends Pick<IJob, 'label'>>(
    jobs: readonly T[]
  ): T[] {
    for (const array of new Set(jobs.map(arrayOf))) {
      if (array !== null) {
        const notice =
          this._arrays.get(array) ??
          new ArrayNotice(array, this._queue.requests, tasks =>
            this._newsOfArray(array, tasks)
          );
        this._arrays.set(array, notice);
        void notice.update();
      }
    }
    return jobs.filter(job => arrayOf(job) === null);
  }

  private _newsOfArray(array: string, tasks: ITasks): IArrayNews {
    const { last_failure: failed } = tasks;
    return {
      message: sayArray(array, tasks),
      ...this._options(failed?.label ?? null, Boolean(failed))
    };
  }

  private _tell(
    words: string,
    job: string | null,
    isBad = false,
    hasNotebook = false
  ): void {
    const { type, ...options } = this._options(job, isBad, hasNotebook);
    Notification.emit(words, type, options);
  }

  private _options(
    job: string | null,
    isBad: boolean,
    hasNotebook = false
  ): Omit<IArrayNews, 'message'> {
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
    return {
      ...{ type: isBad ? 'error' : 'info', actions },
      autoClose: isBad ? false : SHOWN
    };
  }

  private _known: ReadonlySet<string> | null = null;
  private _last: readonly IJob[] | null = null;
  /** Unix seconds: the oldest end in the first list. */
  private _firstEnd: number | null = null;
  /** When jobs that wait were queued, by id. */
  private readonly _queued = new Map<number, number>();
  private readonly _arrays = new Map<string, ArrayNotice>();
}

function keyOf({ id, attempt }: IJob): string {
  return `${id} ${attempt}`;
}

function hasNotebook({ spec, started }: IJob): boolean {
  return Boolean(spec.notebook) && started !== null;
}
