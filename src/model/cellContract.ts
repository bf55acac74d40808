/** What the server says of cells that ran on ranks, exactly as it comes over the wire. */

/** A time in which a rank was busy with a cell. */
export interface IStretch {
  rank: number;
  /** The UUID of its GPU. */
  gpu: string | null;
  /** Unix seconds. */
  start: number;
  /** Null while it lasts. */
  end: number | null;
  /** Null unless the cell was profiled. */
  lanes: ILanes | null;
}

/** Times from, to, in Unix seconds. */
export type Spans = readonly (readonly [number, number])[];

/** What a rank did when. */
export interface ILanes {
  compute: Spans;
  communication: Spans;
  /** For other ranks. */
  waiting: Spans;
  /** For how long it did each: times that were joined to one are longer than that. */
  seconds?: Readonly<Record<'compute' | 'communication' | 'waiting', number>>;
}

/** One execution of a cell, on the ranks of one pool. */
export interface ICell {
  /** The id of the request that runs it. */
  id: string;
  pool: string;
  kernel_id: string | null;
  /** The notebook's path, empty when there is none. */
  name: string;
  /** The notebook's number of the cell; null if that has none. */
  cell: number | null;
  /** The notebook's id of the cell; null if the front end gave none. */
  cell_id: string | null;
  stretches: IStretch[];
}

export interface ICellsMessage {
  type: 'cells';
  /** Whether these are all cells, not only those that changed. */
  complete: boolean;
  cells: ICell[];
}
