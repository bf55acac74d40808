import { PathExt } from '@jupyterlab/coreutils';

import { labelOf } from '../model/cards';
import type { IPool } from '../model/contract';
import type { IGpu, ILease, IProcess } from '../model/gpuContract';
import { strangers } from '../model/gpuUse';
import type { ISeat, ISegment } from '../model/gpuUse';
import type { IReading } from '../model/reading';
import { trans } from '../model/trans';
import { formatBytes, formatRanks, joinFacts, namePid } from './format';

/** The pools that can be named, and which of them is this notebook's. */
export interface IKnownPools {
  pools: ReadonlyMap<string, IPool>;
  own: IPool | null;
}

/** `3`, or `3 on n2` if it is in another machine. */
export function labelWithNode(gpu: IGpu): string {
  return gpu.node ? trans.__('%1 on %2', labelOf(gpu), gpu.node) : labelOf(gpu);
}

/**
 * Who has a GPU: `rank 0`, `rank 0 · leased to bob, train.ipynb`. That a notebook's ranks have its lease goes
 * without saying.
 */
export function sayLeaseholder(
  reading: IReading,
  seats: ISeat[],
  known: IKnownPools
): string {
  const ranks = seats.map(({ rank }) => rank);
  const facts = [
    ranks.length > 0 &&
      trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks)),
    ...(reading.lease
      ? sayLease(reading.lease, ranks.length > 0, known)
      : sayUse(reading)),
    reading.closed?.words
  ];
  return joinFacts(facts) || (reading.processes ? trans.__('not leased') : '');
}

/** A fact for each who has a lease, this notebook first. */
function sayLease(
  lease: ILease,
  hasRanks: boolean,
  known: IKnownPools
): (string | false)[] {
  if (lease.user === null) {
    return [trans.__('locked by another program')];
  }
  return lessees(lease, known).map(one => {
    const name = nameLessee(one, known);
    if (isOwn(one, known)) {
      return lease.shared
        ? trans.__('shared by this notebook')
        : !hasRanks && trans.__('leased to this notebook');
    }
    if (name === null) {
      return trans.__('shared by another program');
    }
    return lease.shared
      ? trans.__('shared by %1', name)
      : trans.__('leased to %1', name);
  });
}

/** Who has a lease, and who shares it: `this notebook · bob, train.ipynb`. */
export function sayLessees(lease: ILease, known: IKnownPools): string {
  return joinFacts(
    lessees(lease, known).map(one =>
      isOwn(one, known)
        ? trans.__('this notebook')
        : (nameLessee(one, known) ?? trans.__('another program'))
    )
  );
}

function lessees(lease: ILease, known: IKnownPools): ILease[] {
  return [lease, ...(lease.others ?? [])].sort(
    (a, b) => Number(isOwn(b, known)) - Number(isOwn(a, known))
  );
}

function isOwn({ pool }: ILease, { own }: IKnownPools): boolean {
  return Boolean(pool) && pool === own?.id;
}

/** The job or notebook; of somebody else's also the user: `bob, train.ipynb`. Null for a lock that is none of ours. */
function nameLessee(lease: ILease, { pools }: IKnownPools): string | null {
  if (lease.user === null) {
    return null;
  }
  const [kind, job] = lease.pool?.split('-') ?? [];
  if (kind === 'job' && job) {
    // The number first: there may be no room for more.
    return trans.__('job %1, %2', job, lease.user);
  }
  const name =
    PathExt.basename(lease.notebook ?? '') || namePid(lease.pid ?? '?');
  return pools.has(lease.pool ?? '') ? name : `${lease.user}, ${name}`;
}

/** Nobody has a lease, but somebody may hold memory all the same: the processes, the largest first. */
function sayUse(reading: IReading): string[] {
  const [largest, ...more] = strangers(reading);
  if (reading.use?.unseen) {
    return [reading.use.words];
  }
  return largest
    ? [
        ...sayProcess(largest),
        ...(more.length
          ? [trans._n('%1 more process', '%1 more processes', more.length)]
          : [])
      ]
    : [];
}

/** Who uses a GPU, where there is room for a word or two: `python, bob`. */
export function sayUserShortly({ command, pid, user }: IProcess): string {
  return [command ?? namePid(pid), user].filter(Boolean).join(', ');
}

/** `python, pid 812, bob`, `another program`. */
function sayProcess({ command, pid, user, who }: IProcess): string[] {
  const name = (...parts: (string | null)[]) =>
    parts.filter(Boolean).join(', ');
  switch (who.kind) {
    case 'kernel':
      return [trans.__('kernel of %1', PathExt.basename(who.name) || pid)];
    case 'mine':
      return [name(command, namePid(pid))];
    default:
      return [name(command, namePid(pid), user), trans.__('another program')];
  }
}

/** Who a process is, in a word or two: `rank 0 of train.ipynb`, `yours`, `bob`. */
export function sayWho({ who, user }: IProcess, known: IKnownPools): string {
  switch (who.kind) {
    case 'rank': {
      const pool = known.pools.get(who.pool);
      return who.pool === known.own?.id || !pool
        ? trans.__('rank %1', who.rank)
        : trans.__(
            'rank %1 of %2',
            who.rank,
            PathExt.basename(pool.name) || pool.id
          );
    }
    case 'kernel':
      return trans.__('kernel of %1', PathExt.basename(who.name));
    case 'mine':
      return trans.__('yours');
    case 'other':
      return user ?? trans.__('another user');
    case 'unknown':
      return trans.__('unknown');
  }
}

/** A part of the memory: `rank 0 31.2 GB`. */
export function saySegment({ owner, bytes }: ISegment): string {
  const size = formatBytes(bytes);
  switch (owner.kind) {
    case 'rank':
      return trans.__('rank %1: %2', owner.rank, size);
    case 'kernel':
      return trans.__('notebook kernels: %1', size);
    case 'mine':
      return trans.__('other processes of yours: %1', size);
    case 'other':
      return trans.__('other users: %1', size);
    case 'rest':
      return trans.__('others and the driver: %1', size);
  }
}
