import { useEffect, useLayoutEffect, useRef } from 'react';
import type { RefObject } from 'react';

/** Put the focus to the next action within an element; answers whether there is one. */
export function focusNextAction(within: HTMLElement | null): boolean {
  const next = ['.jp-mod-primary:enabled', '.jp-Button:enabled', 'button']
    .map(selector => within?.querySelector<HTMLElement>(selector))
    .find(Boolean);
  next?.focus();
  return Boolean(next);
}

/** When the control that has the focus goes or is disabled, the next action within the element has it. */
export function useFocusHandOff(): RefObject<HTMLDivElement> {
  const element = useRef<HTMLDivElement>(null);
  const isInside = useRef(false);
  useEffect(() => {
    const note = ({ target }: Event) => {
      isInside.current = element.current?.contains(target as Node) ?? false;
    };
    document.addEventListener('focusin', note);
    document.addEventListener('pointerdown', note, true);
    return () => {
      document.removeEventListener('focusin', note);
      document.removeEventListener('pointerdown', note, true);
    };
  }, []);
  useLayoutEffect(() => {
    const active = document.activeElement;
    const isLost = !active || active.matches('body, :disabled');
    if (isInside.current && isLost) {
      focusNextAction(element.current);
    }
  });
  return element;
}
