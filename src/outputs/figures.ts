import type { Item } from './item';
import type { IOwner } from './labels';

/** A figure that is shown beside others. */
export interface IFigure {
  owner: IOwner;
  /** Its place among all outputs. */
  place: number;
  /** The number of consecutive figures. */
  run: number;
}

/**
 * The labelled images in a sequence, by their index among the outputs. Their places are sorted: the first
 * image of each rank, in the order of ranks, then the second one of each.
 */
export function figuresIn(items: readonly Item[]): Map<number, IFigure> {
  const figures = new Map<number, IFigure>();
  let run: { index: number; owner: IOwner; nth: number }[] = [];
  const end = () => {
    const places = run.map(({ index }) => index);
    const sorted = [...run].sort(
      (one, other) =>
        one.nth - other.nth || firstRank(one.owner) - firstRank(other.owner)
    );
    if (run.length > 1) {
      sorted.forEach(({ index, owner }, i) =>
        figures.set(index, { owner, place: places[i], run: run.length })
      );
    }
    run = [];
  };
  let owner: IOwner | null = null;
  items.forEach((item, index) => {
    if (item.kind === 'label') {
      owner = item.owner;
      return;
    }
    const of = owner;
    owner = null;
    if (item.kind === 'other' && of && isImage(item)) {
      const nth = run.filter(one => one.owner === of).length;
      run.push({ index, owner: of, nth });
    } else {
      end();
    }
  });
  end();
  return figures;
}

function isImage({ model }: Item): boolean {
  return Object.keys(model.data).some(type => type.startsWith('image/'));
}

function firstRank({ ranks }: IOwner): number {
  return Math.min(...ranks);
}
