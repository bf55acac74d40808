import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IPool } from '../model/contract';
import type { ILease, IProcess } from '../model/gpuContract';
import { strangers } from '../model/gpuUse';
import type { ISeat, ISegment } from '../model/gpuUse';
import type { IReading } from '../model/telemetry';
import { formatBytes, formatRanks } from './format';

/** The pools that can be named, and which of them is this notebook's. */
export interface IKnownPools {
  pools: ReadonlyMap<string, IPool>;
  own: IPool | null;
}

/**
 * Who has a GPU, in a phrase: `rank 0 · leased to this notebook`.
 */
export function sayLeaseholder(
  reading: IReading,
  seats: ISeat[],
  known: IKnownPools,
  trans: TranslationBundle
): string {
  const ranks = seats.map(({ rank }) => rank);
  const seated = ranks.length
    ? trans._n('rank %2', 'ranks %2', ranks.length, formatRanks(ranks))
    : '';
  return (
    [seated, sayLease(reading, known, trans) || sayUsers(reading, trans)]
      .filter(Boolean)
      .join(' · ') || (reading.processes ? trans.__('free') : '')
  );
}

function sayLease(
  { lease }: IReading,
  known: IKnownPools,
  trans: TranslationBundle
): string {
  if (!lease) {
    return '';
  }
  if (lease.user === null) {
    return trans.__('locked by a program that is not ours');
  }
  const who = sayLessees(lease, known, trans);
  return lease.shared
    ? trans.__('shared by %1', who)
    : trans.__('leased to %1', who);
}

/**
 * Who has a lease, and who shares it: `this notebook; bob, train.ipynb`.
 */
export function sayLessees(
  lease: ILease,
  known: IKnownPools,
  trans: TranslationBundle
): string {
  const isOwn = ({ pool }: ILease) => Boolean(pool) && pool === known.own?.id;
  return [lease, ...(lease.others ?? [])]
    .sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)))
    .map(one =>
      isOwn(one) ? trans.__('this notebook') : sayLessee(one, known, trans)
    )
    .join('; ');
}

/** The notebook; of somebody else's also the user: `bob, train.ipynb`. */
function sayLessee(
  lease: ILease,
  { pools }: IKnownPools,
  trans: TranslationBundle
): string {
  if (lease.user === null) {
    return trans.__('a program that is not ours');
  }
  const name =
    PathExt.basename(lease.notebook ?? '') ||
    trans.__('pid %1', lease.pid ?? '?');
  return pools.has(lease.pool ?? '') ? name : `${lease.user}, ${name}`;
}

/** Nobody has a lease, but somebody may hold memory all the same. */
function sayUsers(reading: IReading, trans: TranslationBundle): string {
  const [largest, ...more] = strangers(reading);
  if (!largest) {
    return '';
  }
  const who = sayProcess(largest, trans);
  return more.length ? trans.__('%1 and %2 more', who, more.length) : who;
}

/** `python, pid 812, bob · not ours`. */
function sayProcess(process: IProcess, trans: TranslationBundle): string {
  const { command, pid, user, who } = process;
  switch (who.kind) {
    case 'kernel':
      return trans.__('kernel of %1', PathExt.basename(who.name) || pid);
    case 'mine':
      return [command, trans.__('pid %1', pid)].filter(Boolean).join(', ');
    default:
      return trans.__(
        '%1 · not ours',
        [command, trans.__('pid %1', pid), user].filter(Boolean).join(', ')
      );
  }
}

/**
 * Who a process is, in a word or two: `rank 0 of train.ipynb`, `yours`, `bob`.
 */
export function sayWho(
  { who, user }: IProcess,
  known: IKnownPools,
  trans: TranslationBundle
): string {
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
      return trans.__('not known');
  }
}

/** A part of the memory: `rank 0 31.2 GB`. */
export function saySegment(
  { owner, bytes }: ISegment,
  trans: TranslationBundle
): string {
  const size = formatBytes(bytes, trans);
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
