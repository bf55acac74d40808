/** How the content of a variable compares between ranks. */
export type Content =
  | 'equal'
  | 'differs'
  /** Ranks hold parts of it, whose copies are equal. */
  | 'sharded'
  /** Of a type that cannot be compared. */
  | 'incomparable'
  /** Too large to be compared unasked. */
  | 'unchecked'
  /** Only one rank has it. */
  | 'single';

/** What a variable is on some ranks. */
export interface IVariableForm {
  ranks: number[];
  type: string;
  /** How many tensors and values are in it; null for one that is a tensor or value itself. */
  items: number | null;
  /** Of a DTensor, that of all parts together. */
  shape: number[] | null;
  /** The part of a DTensor that these ranks hold; empty for anything else. */
  shard: string;
  dtypes: string[];
  devices: string[];
  /** On one of these ranks. */
  nbytes: number;
}

/** A variable on all ranks. */
export interface IVariable {
  name: string;
  content: Content;
  /** On the rank where it holds most. */
  nbytes: number;
  /** Several if it is something else on some ranks. */
  forms: IVariableForm[];
  /** Sentences on what differs; not on everything if that is much. */
  differences: string[];
  /** How many tensors and values in it differ. */
  differing: number;
}

export interface IVariables {
  variables: IVariable[];
  /** Those that have told; the others are in one of the next three. */
  ranks: number[];
  busy: number[];
  silent: number[];
  dead: number[];
  /** What a check has found. */
  sentences: string[];
}
