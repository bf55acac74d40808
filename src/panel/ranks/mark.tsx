import React from 'react';

import type { Mood } from '../../words/rankWords';

/** A shape for each state, so that nobody has to tell colours apart. */
const SHAPES: Record<Mood, JSX.Element> = {
  idle: (
    <circle
      cx="5"
      cy="5"
      r="3.2"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
    />
  ),
  busy: <circle cx="5" cy="5" r="4" fill="currentColor" />,
  waits: <path d="M5 .8 9.6 9H.4z" fill="currentColor" />,
  dead: <path d="m1.5 1.5 7 7m0-7-7 7" stroke="currentColor" strokeWidth="2" />,
  starting: (
    <path
      d="M1 5h8"
      stroke="currentColor"
      strokeWidth="2"
      strokeDasharray="2 1"
    />
  ),
  ending: <path d="M1 5h8" stroke="currentColor" strokeWidth="2" />
};

/**
 * What a rank does, in a shape: a ring is idle, a disc busy, a triangle waits, a cross is dead.
 */
export function Mark({ mood }: { mood: Mood }): JSX.Element {
  return (
    <svg
      className={`jp-dist-Mark jp-mod-${mood}`}
      viewBox="0 0 10 10"
      aria-hidden="true"
    >
      {SHAPES[mood]}
    </svg>
  );
}
