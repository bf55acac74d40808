// In plain text, the kernel writes `[0-3] text`, padded to the width of the longest plain range; or the
// label on a line of its own, above ten or more lines without one.

/** The most ranks of a pool. */
const MOST = 1024;
const LONGEST = 5 * MOST;
const LABEL = /^\[(\d[\d,-]*)\]/;
const PART = /^(\d+)(?:-(\d+))?$/;
const BRACKET = '['.charCodeAt(0);
const SPACE = ' '.charCodeAt(0);

/** Ranks that have printed the same; there is one object for each set. */
export interface IOwner {
  /** Such as `0-2,5`. */
  readonly label: string;
  readonly ranks: ReadonlySet<number>;
}

export class Owners {
  longest = 0;

  /** Null if the text is no label. */
  of(label: string): IOwner | null {
    let owner = this._known.get(label);
    if (!owner) {
      const ranks = ranksOf(label);
      if (!ranks) {
        return null;
      }
      owner = { label, ranks: new Set(ranks) };
      this._known.set(label, owner);
      this.longest = Math.max(this.longest, label.length);
    }
    return owner;
  }

  private readonly _known = new Map<string, IOwner>();
}

/**
 * The ranks of a label such as `0-2,5`, in order; null if no pool has such ranks. Anybody may have written
 * the notebook, so this is checked before ranks are listed.
 */
export function ranksOf(label: string): number[] | null {
  if (label.length > LONGEST) {
    return null;
  }
  const ranks: number[] = [];
  for (const part of label.split(',')) {
    const match = PART.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? first);
    if (!match || first > last || last >= MOST || ranks.length >= MOST) {
      return null;
    }
    for (let rank = first; rank <= last; rank++) {
      ranks.push(rank);
    }
  }
  return ranks;
}

export function onlyRank({ ranks }: IOwner): number | null {
  const [rank] = ranks;
  return ranks.size === 1 ? rank : null;
}

/** Reads lines in order, and says which ranks have printed each, and where its text begins. */
export class LabelReader {
  constructor(
    private readonly _owners: Owners,
    worldSize: number
  ) {
    this._width = `[0-${worldSize - 1}]`.length;
  }

  private readonly _width: number;

  /** The owner of the next line without a label. */
  current: IOwner | null = null;
  owner: IOwner | null = null;
  /** Where its text begins; -1 if it is only a label. */
  start = 0;

  read(line: string): void {
    this.owner = this.current;
    this.start = 0;
    const match = line.charCodeAt(0) === BRACKET ? LABEL.exec(line) : null;
    const end = match?.[0].length ?? 0;
    const isAlone = end === line.length;
    const owner =
      match && (isAlone || line.charCodeAt(end) === SPACE)
        ? this._owners.of(match[1])
        : null;
    if (!owner) {
      return;
    }
    this.owner = owner;
    if (isAlone) {
      this.current = owner;
      this.start = -1;
    } else {
      this.current = null;
      const padded = Math.max(end, this._width) + 1;
      const gap = line.slice(end, padded);
      // Output of threads after the cell has no padding.
      this.start = gap.trim() || line.length < padded ? end + 1 : padded;
    }
  }
}
