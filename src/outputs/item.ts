import type { IOutputModel } from '@jupyterlab/rendermime';

import { LabelReader, ranksOf, type IOwner, type Owners } from './labels';
import { Lines } from './lines';

/** The first output of a cell on several ranks. */
export const HEADER = 'application/vnd.jupyter-dist.ranks+json';
const STREAM = 'jupyter_dist_stream';
const KIND = 'jupyter_dist_kind';

const STDOUT = 'application/vnd.jupyter.stdout';
const STDERR = 'application/vnd.jupyter.stderr';

export interface IHeader {
  ranks: string;
  world_size: number;
  /** By rank, why it failed. */
  failed: Record<string, string>;
}

/** The header, or null if it is invalid: anybody may have written the notebook. */
export function readHeader(data: unknown): IHeader | null {
  const { ranks, world_size, failed } = {
    ...(data as Partial<IHeader> | null)
  };
  if (typeof ranks !== 'string' || typeof world_size !== 'number') {
    return null;
  }
  const named = ranksOf(ranks);
  if (!named?.every(rank => rank < world_size)) {
    return null;
  }
  const reasons = named.flatMap(rank => {
    const reason = failed?.[rank];
    return typeof reason === 'string' ? [[rank, reason] as const] : [];
  });
  return { ranks, world_size, failed: Object.fromEntries(reasons) };
}

/**
 * One output of a cell with a header: text with labels, the label of the display below it, or another
 * output, such as this display.
 */
export type Item =
  | { kind: 'text'; model: IOutputModel; lines: Lines }
  | { kind: 'label'; model: IOutputModel; owner: IOwner | null }
  | { kind: 'header' | 'other'; model: IOutputModel };

export function kindOf(model: IOutputModel): Item['kind'] {
  if (model.type === 'stream') {
    // User input is a stream, too.
    return model.toJSON().name === 'stdin' ? 'other' : 'text';
  }
  if (STREAM in model.metadata || model.metadata[KIND] === 'bars') {
    return 'text';
  }
  if (model.metadata[KIND] === 'label') {
    return 'label';
  }
  return HEADER in model.data ? 'header' : 'other';
}

export function makeItem(
  model: IOutputModel,
  owners: Owners,
  worldSize: number
): Item {
  const kind = kindOf(model);
  const reader = new LabelReader(owners, worldSize);
  if (kind === 'label') {
    reader.read(textOf(model));
    return { kind, model, owner: reader.owner };
  }
  if (kind !== 'text') {
    return { kind, model };
  }
  const isError =
    model.type === 'stream'
      ? model.toJSON().name === 'stderr'
      : model.metadata[STREAM] === 'stderr';
  const lines = new Lines(reader, isError);
  lines.append(textOf(model));
  return { kind, model, lines };
}

/** The labelled text of an output; streams have a text of their own from JupyterLab 4.3 on. */
export function textOf({ data, streamText }: IOutputModel): string {
  return (
    streamText?.text ??
    String(data['text/plain'] ?? data[STDOUT] ?? data[STDERR] ?? '')
  );
}
