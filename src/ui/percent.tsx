import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

interface IPercentProps {
  label: string;
  title: string;
  /** Null where it is not known. */
  value: number | null;
  /** What is shown of it. */
  children: React.ReactNode;
  trans: TranslationBundle;
}

/**
 * How busy something is, as the number at the right of a card.
 */
export function Percent(props: IPercentProps): JSX.Element {
  const { label, title, value, children, trans } = props;
  const percent = Math.round(value ?? 0);
  return (
    <span
      className="jp-dist-GpuCard-load"
      title={title}
      {...(value !== null && {
        role: 'meter',
        'aria-label': label,
        'aria-valuemin': 0,
        // A process may use several cores.
        'aria-valuemax': Math.max(100, percent),
        'aria-valuenow': percent,
        'aria-valuetext': trans.__('%1 %', percent)
      })}
    >
      {children}
    </span>
  );
}
