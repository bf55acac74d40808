import React from 'react';

import type { NumberMetric } from '../model/gpuContract';
import type { IReading } from '../model/reading';
import { trans } from '../model/trans';

interface IValueProps {
  metric: NumberMetric;
  reading: IReading;
  format: (value: number) => string;
}

/** A metric's value, or a dash that says why there is none. */
export function Value(props: IValueProps): JSX.Element {
  const { metric, reading, format } = props;
  const value = reading.values[metric];
  return typeof value === 'number' ? (
    <>{format(value)}</>
  ) : (
    <Missing reason={sayMissing(metric, reading)} />
  );
}

export function Missing({ reason }: { reason: string }): JSX.Element {
  return (
    <span role="img" aria-label={reason} title={reason}>
      –
    </span>
  );
}

function sayMissing(metric: NumberMetric, { errors }: IReading): string {
  switch (errors[metric]) {
    case undefined:
      return trans.__('No reading');
    case 'unsupported':
      return trans.__('Not supported by this GPU or its driver');
    case 'no permission':
      return trans.__('Not permitted by the driver');
    case 'lost':
      return trans.__('The GPU is lost');
    default:
      return trans.__('Cannot be read: %1', errors[metric]);
  }
}
