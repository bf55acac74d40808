import { Menu } from '@lumino/widgets';

import { CommandIDs } from '../../model/tokens';
import { trans } from '../../model/trans';
import { makeMenu } from '../../ui/menu';
import type { IMenuPlace, IMenuServices } from '../../ui/menu';

/** What can be done with one rank. */
export function openRankMenu(
  services: IMenuServices,
  pool: string,
  rank: number,
  place: IMenuPlace
): void {
  const args = { pool, rank };
  const menu = makeMenu(services, place);
  menu.addItem({ command: CommandIDs.interruptRanks, args });
  menu.addItem({ command: CommandIDs.restartRanks, args });
  menu.addItem({ command: CommandIDs.killRank, args });
  menu.addItem({ type: 'separator' });
  menu.addItem({ command: CommandIDs.showStacks, args });
  menu.addItem({ command: CommandIDs.showLog, args });
  menu.addItem({ type: 'separator' });
  menu.addItem({ command: CommandIDs.runOnRank, args });
  addCode(menu, services, trans.__('Insert Code'), [
    `%%rank [${rank}]`,
    `%dist_restart --ranks ${rank}`
  ]);
  menu.open(place.x, place.y);
}

/** What can be done with a pool beside what its buttons do. */
export function openPoolMenu(
  services: IMenuServices,
  pool: string,
  place: IMenuPlace
): void {
  const menu = makeMenu(services, place);
  menu.addItem({ command: CommandIDs.showStacks, args: { pool } });
  addCode(menu, services, trans.__('Insert Code'), [
    '%dist_status',
    '%dist_interrupt',
    '%dist_restart',
    '%dist_shutdown'
  ]);
  menu.open(place.x, place.y);
}

/** The magics that do the same, to be inserted into the notebook. */
function addCode(
  menu: Menu,
  { commands }: IMenuServices,
  label: string,
  sources: string[]
): void {
  const submenu = new Menu({ commands });
  submenu.title.label = label;
  for (const source of sources) {
    submenu.addItem({
      command: CommandIDs.insertCode,
      args: { source, label: source }
    });
  }
  menu.addItem({ type: 'submenu', submenu });
  menu.disposed.connect(() => submenu.dispose());
}
