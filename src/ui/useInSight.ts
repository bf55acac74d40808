import { useLayoutEffect, useRef } from 'react';
import type { RefObject } from 'react';

/** Scrolls an element into sight when what it says is new. */
export function useInSight<E extends HTMLElement>(news: unknown): RefObject<E> {
  const element = useRef<E>(null);
  useLayoutEffect(() => {
    if (news) {
      // The notebook beside the panel is to stay where it is.
      element.current?.scrollIntoView?.({ block: 'nearest' });
    }
  }, [news]);
  return element;
}
