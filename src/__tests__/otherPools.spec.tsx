import type { IPool } from '../model/contract';
import type { ILease } from '../model/gpuContract';
import { OtherPools, OtherPoolsSummary } from '../panel/others/otherPools';
import { CommandIDs } from '../model/tokens';
import {
  GPU_0,
  makeGpusMessage,
  makeInventory,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { FakeQueue, makeRow } from './queueSamples';
import { makeAttachment, makePool, makeRank } from './samples';
import type { IFakeModel } from './samples';
import { button, executed, host, press, show } from './screen';

const orphaned = new Date(2026, 0, 1, 14, 3, 12).getTime() / 1000;
const orphan = makePool({
  id: 'p2',
  kernel_id: 'k2',
  name: 'deep/plot.ipynb',
  orphaned,
  attachments: [makeAttachment({ as: 'server', kernel_id: null, name: '' })]
});
const other = makePool({
  id: 'p3',
  kernel_id: 'k3',
  name: 'deep/sum.ipynb',
  ranks: [makeRank(0, { gpu: GPU_0 }), makeRank(1, { gpu: GPU_0 })]
});

/** Show a part for a server with these pools. */
function showPools(
  pools: IPool[],
  changes: Partial<IFakeModel> = {},
  Part: Parameters<typeof show>[1] = OtherPools
): void {
  const all = new Map(pools.map(pool => [pool.id, pool]));
  show({ pools: all, ...changes }, Part);
}

function titles(): (string | null)[] {
  return [...host.querySelectorAll('li strong')].map(node => node.textContent);
}

describe('OtherPools', () => {
  it('says that there is none', () => {
    const own = makePool();
    const ended = makePool({ id: 'p4', state: 'COMPLETED', ended: 99 });
    showPools([own, ended], { pool: own });
    expect(host.textContent).toBe('No other pool runs on this machine.');
  });

  it('shows what each has, orphaned ones first, and what can be done', () => {
    const telemetry = makeTelemetry({
      type: 'usage',
      pools: {
        p3: [makeUsage(0, { reserved: 2 ** 31 }), makeUsage(1)]
      }
    });
    showPools([other, orphan], { telemetry });
    expect(titles()).toEqual(['plot.ipynb', 'sum.ipynb']);
    expect(host.querySelectorAll('li')[1].textContent).toBe(
      'sum.ipynbRunning2 ranks · GPU 0 · 3.0 GiBOpen notebookStop…'
    );
    expect(host.textContent).toMatch('has been gone since Jan 1, 14:03');
    press('Attach');
    press('Open notebook');
    press('Stop…');
    expect(executed).toEqual([
      { id: CommandIDs.attachPool, pool: 'p2' },
      { id: 'docmanager:open', path: 'deep/plot.ipynb' },
      { id: CommandIDs.stopPool, pool: 'p2' }
    ]);
  });

  it('names by its id what has no notebook, and needs a notebook to attach', () => {
    showPools([{ ...orphan, name: '' }], { notebook: null });
    expect(titles()).toEqual(['p2']);
    expect(button('Attach').disabled).toBe(true);
    expect(() => button('Open notebook')).toThrow();
  });

  it('cancels a start', () => {
    showPools([{ ...orphan, state: 'CONFIGURING' }]);
    expect(host.querySelector('[role=status]')?.textContent).toBe('Starting');
    press('Cancel');
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p2' }]);
  });

  it('gives no advice while a pool stops', () => {
    showPools([{ ...orphan, state: 'COMPLETING' }]);
    expect(host.querySelector('[role=status]')?.textContent).toBe('Stopping');
    expect(host.textContent).not.toMatch('has been gone');
    expect(button('Stop…').disabled).toBe(true);
  });

  it('shows what others have leased, each with all their GPUs', () => {
    const bob: ILease = {
      ...{ user: 'bob', pid: 7, since: orphaned, shared: false },
      ...{ pool: 'p9', notebook: 'x/a.ipynb' }
    };
    const unknown: ILease = { user: null, shared: false };
    const ours: ILease = {
      ...bob,
      pool: 'p3',
      shared: true,
      others: [unknown]
    };
    const showLeases = (
      leases: Record<string, ILease>,
      queue = new FakeQueue()
    ) =>
      showPools([other], {
        queue,
        gpus: makeInventory(),
        telemetry: makeTelemetry(makeGpusMessage({ leases }))
      });
    showLeases({ 'GPU-0': bob, 'GPU-1': bob });
    expect(titles()).toEqual(['sum.ipynb', 'bob · a.ipynb']);
    expect(host.textContent).toMatch(
      'GPUs 0, 1 · since Jan 1, 14:03 · another Jupyter server'
    );
    showLeases({ 'GPU-0': ours });
    expect(titles()).toEqual(['sum.ipynb', 'Another program']);
    // What a job has is in the queue.
    const rows = [makeRow({ state: 'RUNNING', gpu_uuids: ['GPU-0'] })];
    showLeases(
      { 'GPU-0': { ...bob, pool: 'job-3-1f' }, 'GPU-1': bob },
      new FakeQueue({ rows })
    );
    expect(titles()).toEqual(['sum.ipynb', 'bob · a.ipynb']);
    expect(host.textContent).toMatch('GPU 1 · since');
  });

  it('leaves a pool in its own notebook, whose kernel can be restarted', () => {
    const own = { ...orphan, kernel_id: 'k1' };
    show({ pool: own });
    expect(host.textContent).toMatch('has been gone since Jan 1, 14:03');
    press('Restart kernel');
    expect(executed).toEqual([{ id: CommandIDs.attachPool, pool: 'p2' }]);
  });
});

describe('OtherPoolsSummary', () => {
  it.each([
    [[], ''],
    [[other], '1'],
    [[orphan], '1 orphaned'],
    [[other, orphan], '2 · 1 orphaned']
  ])('counts them', (pools, text) => {
    showPools(pools, {}, OtherPoolsSummary);
    expect(host.textContent).toBe(text);
  });
});
