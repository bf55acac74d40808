import { CommandIDs } from '../../model/tokens';
import { makeMenu } from '../../ui/menu';
import type { IMenuPlace, IMenuServices } from '../../ui/menu';

/** What can be done with own jobs; what does nothing to any of them is left out. */
export function openJobsMenu(
  services: IMenuServices,
  jobs: string[],
  place: IMenuPlace
): void {
  const menu = makeMenu(services, place);
  if (jobs.length === 1) {
    menu.addItem({ command: CommandIDs.openJob, args: { job: jobs[0] } });
    menu.addItem({ type: 'separator' });
  }
  for (const command of [
    CommandIDs.holdJobs,
    CommandIDs.releaseJobs,
    CommandIDs.requeueJobs,
    CommandIDs.cancelJobs
  ]) {
    menu.addItem({ command, args: { jobs } });
  }
  if (jobs.length === 1) {
    menu.addItem({ type: 'separator' });
    for (const by of [-1, 1]) {
      menu.addItem({
        command: CommandIDs.moveJob,
        args: { job: jobs[0], by }
      });
    }
  }
  menu.open(place.x, place.y);
}

/** What can be done with a pool of this server. */
export function openQueuedPoolMenu(
  services: IMenuServices,
  pool: string,
  place: IMenuPlace
): void {
  const menu = makeMenu(services, place);
  menu.addItem({ command: CommandIDs.stopPool, args: { pool } });
  menu.open(place.x, place.y);
}
