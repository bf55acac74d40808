import { Menu } from '@lumino/widgets';

import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { openMenu } from '../../ui/menu';
import type { IMenuPlace, IMenuServices } from '../../ui/menu';

/** The menu of one rank. */
export function openRankMenu(
  services: IMenuServices,
  pool: string,
  rank: number,
  place: IMenuPlace
): void {
  const args = { pool, rank };
  openMenu(services, place, [
    { command: CommandIDs.interruptRanks, args },
    { command: CommandIDs.restartRanks, args },
    { command: CommandIDs.killRank, args },
    { type: 'separator' },
    { command: CommandIDs.debugRank, args },
    { command: CommandIDs.stepOneRank, args },
    { command: CommandIDs.showStacks, args },
    { command: CommandIDs.showLog, args },
    { type: 'separator' },
    { command: CommandIDs.runOnRank, args },
    codeItem(services, [`%%rank [${rank}]`, `%dist_restart --ranks ${rank}`])
  ]);
}

/** The menu of a pool: what has no button beside it. */
export function openPoolMenu(
  services: IMenuServices,
  pool: string,
  place: IMenuPlace
): void {
  openMenu(services, place, [
    { command: CommandIDs.resizePool, args: { pool } },
    { command: CommandIDs.parkPool, args: { pool } },
    { command: CommandIDs.showStacks, args: { pool } },
    codeItem(services, [
      '%dist_status',
      '%dist_interrupt',
      '%dist_restart',
      '%dist_resize 4',
      '%dist_shutdown'
    ])
  ]);
}

/** A submenu that inserts the corresponding magics into the notebook. */
function codeItem(
  { commands }: IMenuServices,
  sources: string[]
): Menu.IItemOptions {
  const submenu = new Menu({ commands });
  submenu.title.label = trans.__('Insert Code');
  for (const source of sources) {
    submenu.addItem({
      command: CommandIDs.insertCode,
      args: { source, label: source }
    });
  }
  return { type: 'submenu', submenu };
}
