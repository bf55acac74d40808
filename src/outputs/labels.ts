/**
 * How the kernel says in plain text who printed a line: `[0-3] text`, padded to the width of the
 * longest plain range; or the label on a line of its own, above ten or more lines without one.
 */

const LABEL = /^\[(\d[\d,-]*)\]/;
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

  of(label: string): IOwner {
    let owner = this._known.get(label);
    if (!owner) {
      owner = { label, ranks: new Set(ranksOf(label)) };
      this._known.set(label, owner);
      this.longest = Math.max(this.longest, label.length);
    }
    return owner;
  }

  private readonly _known = new Map<string, IOwner>();
}

/** The ranks that a label such as `0-2,5` names, in order. */
export function ranksOf(label: string): number[] {
  return label.split(',').flatMap(part => {
    const [first, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** The only rank among some, whose colour can be shown. */
export function onlyRank({ ranks }: IOwner): number | null {
  const [rank] = ranks;
  return ranks.size === 1 ? rank : null;
}

/**
 * Reads lines one after the other, and tells whose each is and where its own text begins.
 */
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
    if (!match) {
      return;
    }
    const end = match[0].length;
    if (end === line.length) {
      this.owner = this.current = this._owners.of(match[1]);
      this.start = -1;
    } else if (line.charCodeAt(end) === SPACE) {
      this.owner = this._owners.of(match[1]);
      this.current = null;
      const padded = Math.max(end, this._width) + 1;
      const gap = line.slice(end, padded);
      // What threads print later comes without padding.
      this.start = gap.trim() || line.length < padded ? end + 1 : padded;
    }
  }
}
