import React, { act, Profiler } from 'react';

import type { IPool } from '../model/contract';
import { Telemetry } from '../model/telemetry';
import { GpuList, GpuSummary } from '../panel/gpus/gpuList';
import { OtherPools, OtherPoolsSummary } from '../panel/others/otherPools';
import { PoolSummary, PoolView } from '../panel/pool/poolView';
import type { IPanelServices } from '../panel/services';
import {
  FakeStream,
  GPU_0,
  makeGpusMessage,
  makeInventory
} from './gpuSamples';
import { emitChanged, makePool, makeRank } from './samples';
import type { IFakeModel } from './samples';
import { show } from './screen';

const SECTIONS = {
  pool: [PoolView, PoolSummary],
  gpus: [GpuList, GpuSummary],
  others: [OtherPools, OtherPoolsSummary]
};

const own = makePool({
  ranks: [0, 1].map(rank => makeRank(rank, { gpu: GPU_0, device: 'cuda:0' }))
});
const other = makePool({ id: 'p2', kernel_id: 'k2', name: 'b.ipynb' });

/** All sections, and a way to give the model news; that answers which sections are drawn again. */
function showPanel() {
  let drawn = new Set<string>();
  let model!: IFakeModel;
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  stream.received.emit(makeGpusMessage());
  const known = (...pools: IPool[]) => ({
    pool: pools[0],
    pools: new Map(pools.map(pool => [pool.id, pool]))
  });
  const Panel = (services: IPanelServices) => {
    model = services.model as IFakeModel;
    return (
      <>
        {Object.entries(SECTIONS).map(([name, parts]) => (
          <Profiler key={name} id={name} onRender={id => drawn.add(id)}>
            {parts.map((Part, index) => (
              <Part key={index} {...services} />
            ))}
          </Profiler>
        ))}
      </>
    );
  };
  show({ ...known(own, other), telemetry, gpus: makeInventory() }, Panel);
  const after = (news: () => void) => {
    drawn = new Set();
    act(news);
    return [...drawn].sort();
  };
  return {
    pools: (...pools: IPool[]) =>
      after(() => {
        Object.assign(model, known(...pools));
        emitChanged(model);
      }),
    sample: (value: number) =>
      after(() =>
        stream.received.emit({
          type: 'sample',
          time: value,
          values: { utilization: [value, value] }
        })
      )
  };
}

/** The pool with one of its ranks busy. */
function withBusyRank(pool: IPool): IPool {
  const [first, ...rest] = pool.ranks;
  const ranks = [{ ...first, state: 'busy' as const, cell: 3 }, ...rest];
  return { ...pool, version: pool.version + 1, ranks };
}

describe('the panel draws again', () => {
  it('nothing, if nothing has changed', () => {
    expect(showPanel().pools(own, other)).toEqual([]);
  });

  it('the pool alone, if one of its ranks is busy', () => {
    const panel = showPanel();
    expect(panel.pools(withBusyRank(own), other)).toEqual(['pool']);
  });

  it('the other pools alone, if one of their ranks is busy', () => {
    const panel = showPanel();
    expect(panel.pools(own, withBusyRank(other))).toEqual(['others']);
  });

  it('the other pools alone, if there is one less', () => {
    expect(showPanel().pools(own)).toEqual(['others']);
  });

  it('no other pool, if GPUs are read', () => {
    expect(showPanel().sample(50)).not.toContain('others');
  });
});
