import type { IGpu, IInventory, NodeGpus } from './gpuContract';

/** A GPU of its own, or the instances of one that is divided. */
export type Card = { gpu: IGpu } | { instances: [IGpu, ...IGpu[]] };

/** The GPUs of the server's machine, and then those of other nodes. */
export function allGpus(
  inventory: IInventory | null,
  nodes: NodeGpus = {}
): IGpu[] {
  return [
    ...(inventory?.gpus ?? []),
    ...Object.values(nodes).flatMap(({ gpus }) => gpus)
  ];
}

/** The GPUs in their order, MIG instances of one GPU together. */
export function cards(gpus: readonly IGpu[]): Card[] {
  const found: Card[] = [];
  const divided = new Map<string, [IGpu, ...IGpu[]]>();
  for (const gpu of gpus) {
    const siblings = gpu.parent === null ? null : divided.get(gpu.parent);
    if (gpu.parent === null) {
      found.push({ gpu });
    } else if (siblings) {
      siblings.push(gpu);
    } else {
      const instances: [IGpu, ...IGpu[]] = [gpu];
      divided.set(gpu.parent, instances);
      found.push({ instances });
    }
  }
  return found;
}

/** `3`, or `3:1` for instance 1 of GPU 3. */
export function labelOf({ index, mig }: IGpu): string {
  return mig === null ? `${index}` : `${index}:${mig}`;
}

/** The name without its maker, and of a MIG instance the size only: `H100 80GB`, `1g.10gb`. */
export function shortName({ name, mig }: IGpu): string {
  const size = mig === null ? undefined : / MIG (\S+)$/.exec(name)?.[1];
  return size ?? bareName(name);
}

/** The GPU that an instance is part of, by name. */
export function bareName(name: string): string {
  return name.replace(/^NVIDIA /, '').replace(/ MIG .*$/, '');
}
