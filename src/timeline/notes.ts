import { serverTime } from '../model/serverTime';
import type { IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';
import { formatMoment, joinSentences } from '../words/format';
import type { TimelineModel } from './model';

export interface INothing {
  title: string;
  more: string[];
}

export function sayNothing({
  connection,
  allGpus,
  gpus,
  gpusError
}: IPoolsModel): INothing | null {
  if (allGpus.length) {
    return null;
  }
  const say = (title: string, ...more: string[]) => ({
    title,
    more: more.filter(Boolean)
  });
  switch (connection.state) {
    case 'missing':
      return say(
        trans.__('The server extension is not enabled'),
        trans.__('The panel “Ranks & GPUs” shows how to enable it.')
      );
    case 'refused':
      return say(connection.error.message, connection.error.hint);
    default:
  }
  if (gpusError) {
    return say(gpusError.message, gpusError.hint);
  }
  if (!gpus) {
    return say(trans.__('Looking for GPUs…'));
  }
  return say(
    trans.__('No GPUs to show'),
    gpus.reason ?? '',
    ...gpus.problems,
    trans.__('The panel “Ranks & GPUs” shows the CPU use of ranks.')
  );
}

export function sayTrouble({ pools, error }: TimelineModel): string {
  const { connection, telemetry, allGpus } = pools;
  if (connection.state === 'stale') {
    return trans.__(
      'Disconnected since %1. Reconnecting…',
      formatMoment(connection.since / 1000)
    );
  }
  const { trouble } = telemetry;
  // Without GPUs, `sayNothing` says it.
  if (trouble && allGpus.length) {
    return trouble.since === null
      ? trouble.message
      : trans.__(
          'Stale since %1: %2',
          formatMoment(trouble.since, serverTime()),
          trouble.message
        );
  }
  return error === null
    ? ''
    : joinSentences([trans.__('GPU history could not be loaded.'), error]);
}
