import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';

/** What a menu belongs to, and where it opens. */
export interface IMenuPlace {
  /** Has the focus again when the menu is closed. */
  owner: HTMLElement;
  x: number;
  y: number;
}

export interface IMenuServices {
  commands: CommandRegistry;
}

/** Below a button. */
export function below(owner: HTMLElement): IMenuPlace {
  const { left, bottom } = owner.getBoundingClientRect();
  return { owner, x: left, y: bottom };
}

/** An empty menu that goes when it is closed, and gives the focus back to what it belongs to. */
export function makeMenu(
  { commands }: IMenuServices,
  { owner }: IMenuPlace
): Menu {
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
