import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';

import { CommandIDs } from '../../model/tokens';

/** What a menu belongs to, and where it opens. */
interface IMenuPlace {
  /** Has the focus again when the menu is closed. */
  owner: HTMLElement;
  x: number;
  y: number;
}

interface IMenuServices {
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/**
 * What can be done with one rank.
 */
export function openRankMenu(
  services: IMenuServices,
  pool: string,
  rank: number,
  place: IMenuPlace
): void {
  const { trans } = services;
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

/**
 * What can be done with a pool beside what its buttons do.
 */
export function openPoolMenu(
  services: IMenuServices,
  pool: string,
  place: IMenuPlace
): void {
  const { trans } = services;
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

/** Below a button. */
export function below(owner: HTMLElement): IMenuPlace {
  const { left, bottom } = owner.getBoundingClientRect();
  return { owner, x: left, y: bottom };
}

function makeMenu({ commands }: IMenuServices, { owner }: IMenuPlace): Menu {
  const menu = new Menu({ commands });
  owner.setAttribute('aria-expanded', 'true');
  menu.aboutToClose.connect(() => {
    owner.removeAttribute('aria-expanded');
    owner.focus();
    // The item that was chosen is still to be executed.
    setTimeout(() => menu.dispose());
  });
  return menu;
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
