import React from 'react';

import { trans } from '../../model/trans';
import type { Mood } from '../../words/rankWords';

interface ILook {
  /** In a square of 10, so that nobody has to tell colours apart. */
  shape: JSX.Element;
  /** How many ranks do it. */
  count: (ranks: number) => string;
}

/** How what a rank does is drawn and counted, what needs action first. */
export const MOODS: Record<Mood, ILook> = {
  dead: {
    shape: (
      <path d="m1.5 1.5 7 7m0-7-7 7" stroke="currentColor" strokeWidth="2" />
    ),
    count: ranks => trans.__('%1 dead', ranks)
  },
  silent: {
    shape: <path d="M5 .5v5.5m0 1.5v2" stroke="currentColor" strokeWidth="2" />,
    count: ranks => trans._n('%1 does not respond', '%1 do not respond', ranks)
  },
  missing: {
    shape: (
      <path
        d="M5 .8 9.2 5 5 9.2.8 5z"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.6"
      />
    ),
    count: ranks => trans._n('%1 is waited for', '%1 are waited for', ranks)
  },
  waits: {
    shape: <path d="M5 .8 9.6 9H.4z" fill="currentColor" />,
    count: ranks => trans._n('%1 waits', '%1 wait', ranks)
  },
  busy: {
    shape: <circle cx="5" cy="5" r="4" fill="currentColor" />,
    count: ranks => trans.__('%1 busy', ranks)
  },
  idle: {
    shape: (
      <circle
        cx="5"
        cy="5"
        r="3.2"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.4"
      />
    ),
    count: ranks => trans.__('%1 idle', ranks)
  },
  starting: {
    shape: (
      <path
        d="M1 5h8"
        stroke="currentColor"
        strokeWidth="2"
        strokeDasharray="2 1"
      />
    ),
    count: ranks => trans.__('%1 starting', ranks)
  },
  parked: {
    shape: <path d="M3 1.5v7m4-7v7" stroke="currentColor" strokeWidth="2" />,
    count: ranks => trans.__('%1 parked', ranks)
  },
  ending: {
    shape: <path d="M1 5h8" stroke="currentColor" strokeWidth="2" />,
    count: ranks => trans.__('%1 stopping', ranks)
  }
};

/** What a rank does, in a shape. */
export function MoodShape({ mood }: { mood: Mood }): JSX.Element {
  return (
    <svg
      className={`jp-dist-MoodShape jp-mod-${mood}`}
      viewBox="0 0 10 10"
      aria-hidden="true"
    >
      {MOODS[mood].shape}
    </svg>
  );
}
