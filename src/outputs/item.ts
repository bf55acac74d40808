import type { IOutputModel } from '@jupyterlab/rendermime';

import { LabelReader, ranksOf, type IOwner, type Owners } from './labels';
import { Lines } from './lines';

/** What the kernel puts before the outputs of a cell on several ranks. */
export const HEADER = 'application/vnd.jupyter-dist.ranks+json';
/** Keys of metadata, as the kernel has them. */
const STREAM = 'jupyter_dist_stream';
const KIND = 'jupyter_dist_kind';

/** What JupyterLab makes of streams. */
const STDOUT = 'application/vnd.jupyter.stdout';
const STDERR = 'application/vnd.jupyter.stderr';

/** The content of the header. */
export interface IHeader {
  /** Where the cell ran, such as `0-3`. */
  ranks: string;
  world_size: number;
  /** Why ranks failed. */
  failed: Record<string, string>;
}

/**
 * What is in a header, in the form that we count on; null if it is something else, as in a notebook that
 * nobody here has written.
 */
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
 * One output of a cell with a header: text with labels, the label of the display below it, or something
 * else, which is that display if there is one.
 */
export type Item =
  | { kind: 'text'; model: IOutputModel; lines: Lines }
  | { kind: 'label'; model: IOutputModel; owner: IOwner | null }
  | { kind: 'header' | 'other'; model: IOutputModel };

export function kindOf(model: IOutputModel): Item['kind'] {
  if (model.type === 'stream') {
    // What the user has typed is a stream, too.
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
  if (kind === 'label') {
    return { kind, model, owner: ownerOf(model, owners, worldSize) };
  }
  if (kind !== 'text') {
    return { kind, model };
  }
  const isError =
    model.type === 'stream'
      ? model.toJSON().name === 'stderr'
      : model.metadata[STREAM] === 'stderr';
  const lines = new Lines(new LabelReader(owners, worldSize), isError);
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

function ownerOf(
  model: IOutputModel,
  owners: Owners,
  worldSize: number
): IOwner | null {
  const reader = new LabelReader(owners, worldSize);
  reader.read(textOf(model));
  return reader.owner;
}
