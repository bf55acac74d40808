/**
 * How the kernel says in plain text who printed a line: `[0-3] text`, padded to the width of the
 * longest plain range; or the label on a line of its own, above ten or more lines without one.
 */

/** As many ranks as the server starts at most. */
const MOST = 1024;
/** Characters: no label of that many ranks is longer. */
const LONGEST = 5 * MOST;
const LABEL = /^\[(\d[\d,-]*)\]/;
const PART = /^(\d+)(?:-(\d+))?$/;
const BRACKET = '['.charCodeAt(0);
const SPACE = ' '.charCodeAt(0);

/** Some ranks that have printed the same; there is one object for each set. */
export interface IOwner {
  /** Such as `0-2,5`. */
  readonly label: string;
  readonly ranks: ReadonlySet<number>;
}

/** The sets of ranks that have been met. */
export class Owners {
  /** Characters of the longest label. */
  longest = 0;

  /** Null if the text is no label: anything may be printed. */
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
 * The ranks that a label such as `0-2,5` names, in order; null if no pool has such ranks. A notebook
 * may come from anybody, so nothing is counted out before that is known.
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

/** The only rank among some, whose colour can be shown. */
export function onlyRank({ ranks }: IOwner): number | null {
  const [rank] = ranks;
  return ranks.size === 1 ? rank : null;
}

/** Reads lines one after the other, and tells whose each is and where its own text begins. */
export class LabelReader {
  constructor(
    private readonly _owners: Owners,
    worldSize: number
  ) {
    this._width = `[0-${worldSize - 1}]`.length;
  }

  private readonly _width: number;

  /** Whose the next line without a label is; null as long as nobody was named. */
  current: IOwner | null = null;
  /** Whose the line is that was read. */
  owner: IOwner | null = null;
  /** Where its text begins; -1 if it is only a label for the lines below it. */
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
      // What threads print later comes without padding.
      this.start = gap.trim() || line.length < padded ? end + 1 : padded;
    }
  }
}
