import type { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import type { MouseEventHandler } from 'react';

/** The element that a menu belongs to, and where the menu opens. */
export interface IMenuPlace {
  /** Gets the focus back when the menu closes. */
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

/** Opens the menu of an element, or of its first button, at the pointer; with Shift, the browser's menu opens. */
export function onContextMenu(
  open: (place: IMenuPlace) => void
): MouseEventHandler<HTMLElement> {
  return event => {
    const owner =
      event.currentTarget.querySelector('button') ?? event.currentTarget;
    if (!event.shiftKey) {
      event.preventDefault();
      event.stopPropagation();
      open({ owner, x: event.clientX, y: event.clientY });
    }
  };
}

/** Open a menu; it is disposed of when it closes. */
export function openMenu(
  { commands }: IMenuServices,
  { owner, x, y }: IMenuPlace,
  items: Menu.IItemOptions[]
): void {
  const menu = new Menu({ commands });
  items.forEach(item => menu.addItem(item));
  owner.setAttribute('aria-expanded', 'true');
  menu.aboutToClose.connect(() => {
    owner.removeAttribute('aria-expanded');
    owner.focus();
    // The chosen item is executed only after this.
    setTimeout(() => {
      menu.dispose();
      items.forEach(({ submenu }) => submenu?.dispose());
    });
  });
  menu.open(x, y);
}
