import React from 'react';

import type { ISegment } from '../model/gpuUse';
import { trans } from '../model/trans';
import { joinFacts } from '../words/format';

const COLOURS = 8;

/** Which of the palette's colours a rank has. */
export function colourOf(rank: number): number {
  return rank % COLOURS;
}

interface IBarProps {
  /** Percent; null where it is not known. */
  value: number | null;
  /** The rank whose colour it has. */
  rank: number;
}

/** How busy something is, as a thin bar beside its figure. */
export function Bar({ value, rank }: IBarProps): JSX.Element {
  const full = Math.min(100, Math.max(0, value ?? 0));
  return (
    <div
      className="jp-dist-Meter"
      data-colour={colourOf(rank)}
      aria-hidden="true"
    >
      <div style={{ transform: `scaleX(${full / 100})` }} />
    </div>
  );
}

interface IMemoryMeterProps {
  label: string;
  /** What is used of how much, in words. */
  text: string;
  /** Bytes. */
  total: number;
  segments: (ISegment & { label: string })[];
}

/** Who holds how much of a GPU's memory. */
export function MemoryMeter(props: IMemoryMeterProps): JSX.Element {
  const { label, text, total, segments } = props;
  const share = (bytes: number) => (100 * bytes) / total;
  const used = segments.reduce((sum, { bytes }) => sum + bytes, 0);
  return (
    <div
      className="jp-dist-MemoryMeter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share(used))}
      aria-valuetext={joinFacts([text, ...segments.map(({ label }) => label)])}
    >
      {segments.map(({ owner, bytes, label }) => (
        <div
          key={
            owner.kind === 'rank' ? `${owner.pool} ${owner.rank}` : owner.kind
          }
          className={`jp-mod-${owner.kind}`}
          data-colour={owner.kind === 'rank' ? colourOf(owner.rank) : undefined}
          style={{ width: `${Math.round(100 * share(bytes)) / 100}%` }}
          title={label}
        />
      ))}
    </div>
  );
}

interface IPercentProps {
  label: string;
  title: string;
  /** Null where it is not known. */
  value: number | null;
  /** What is shown of it. */
  children: React.ReactNode;
}

/** How busy something is, as a number. */
export function Percent(props: IPercentProps): JSX.Element {
  const { label, title, value, children } = props;
  const percent = Math.round(value ?? 0);
  return (
    <span
      className="jp-dist-Percent"
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
