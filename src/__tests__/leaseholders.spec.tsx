import type { ILease } from '../model/gpuContract';
import { Telemetry } from '../model/telemetry';
import { GpuList } from '../panel/gpus/gpuList';
import { card, showGpus, tell } from './gpuScreen';
import {
  FakeStream,
  GPU_0,
  makeGpusMessage,
  makeInventory,
  makeProcess
} from './gpuSamples';
import { makePool, makeRank } from './samples';
import type { IFakeModel } from './samples';
import { host, press, show } from './screen';

describe('who has a GPU', () => {
  const lease = (changes: Partial<ILease> = {}): ILease => ({
    shared: false,
    user: 'bob',
    pid: 7,
    since: 1000,
    pool: 'p1',
    notebook: 'deep/train.ipynb',
    ...changes
  });
  const pool = makePool({
    ranks: [makeRank(0, { gpu: GPU_0 }), makeRank(1, { gpu: GPU_0 })]
  });
  const pools = new Map([['p1', pool]]);
  const leaseholder = () =>
    card('GPU 0').querySelector('.jp-dist-GpuCard-foot > span')?.textContent;

  it.each<[string, ILease, Partial<IFakeModel>]>([
    ['ranks 0–1', lease(), { pool, pools }],
    [
      'leased to this notebook',
      lease(),
      { pool: makePool({ ranks: [] }), pools: new Map() }
    ],
    ['ranks 0–1 · leased to train.ipynb', lease(), { pools }],
    ['leased to bob, train.ipynb', lease({ pool: 'p9' }), {}],
    ['shared by bob, pid 7', lease({ notebook: null, shared: true }), {}],
    [
      'ranks 0–1 · shared by this notebook · shared by bob, a.ipynb',
      lease({
        pool: 'p9',
        notebook: 'a.ipynb',
        shared: true,
        others: [lease()]
      }),
      { pool, pools }
    ],
    ['leased to job 1_0, bob', lease({ pool: 'job-1_0-3fa9' }), {}],
    ['locked by another program', { user: null, shared: false, others: [] }, {}]
  ])('says "%s"', (words, held, changes) => {
    showGpus(makeGpusMessage({ leases: { 'GPU-0': held } }), changes);
    expect(leaseholder()).toBe(words);
  });

  it.each([
    ['python, pid 812, bob · another program', [makeProcess()]],
    [
      'kernel of a.ipynb · 1 more process',
      [
        makeProcess({ memory: 1 }),
        makeProcess({
          pid: 9,
          who: { kind: 'kernel', kernel_id: 'k', name: 'x/a.ipynb' }
        })
      ]
    ],
    ['python, pid 812', [makeProcess({ who: { kind: 'mine' } })]],
    [
      'pid 812 · another program',
      [makeProcess({ command: null, user: null, who: { kind: 'unknown' } })]
    ],
    ['not leased', []]
  ])('says "%s" without a lease', (words, processes) => {
    showGpus(makeGpusMessage());
    tell({ type: 'processes', gpus: { 'GPU-0': processes } });
    expect(leaseholder()).toBe(words);
  });

  it('lists the processes and the other metrics on demand', () => {
    showGpus(makeGpusMessage(), { pool, pools });
    tell(
      {
        type: 'processes',
        gpus: {
          'GPU-0': [
            makeProcess({
              pid: 1001,
              user: 'ann',
              sm: 71,
              who: { kind: 'rank', pool: 'p1', rank: 1 }
            }),
            makeProcess({ memory: null })
          ]
        }
      },
      { type: 'sample', time: 1, values: { sm_active: [71.4, 0] } }
    );
    expect(card('GPU 0').textContent).toMatch(/2 processes$/);
    press('Details of GPU 0');
    const rows = [
      ...host.querySelectorAll('ul[aria-label="Processes on GPU 0"] > li')
    ];
    expect(rows.map(row => row.textContent)).toEqual([
      'rank 131.0 GiB · SM 71 %pid 1001 · ann · python',
      'bob–pid 812 · bob · python'
    ]);
    const metrics = card('GPU 0').querySelector('dl')?.textContent;
    expect(metrics).toMatch(/SM active71 %/);
    expect(metrics).toMatch(/UUIDGPU-0$/);
    press('Details of GPU 0');
    expect(host.querySelector('dl')).toBeNull();
  });

  it('asks for PCIe rates only while details are open', () => {
    const stream = new FakeStream();
    const telemetry = new Telemetry(stream);
    stream.received.emit(makeGpusMessage());
    telemetry.watch('gpus');
    show({ gpus: makeInventory(), telemetry }, GpuList);
    press('Details of GPU 0');
    press('Details of GPU 1');
    expect(stream.watched.at(-1)).toEqual(['gpus', 'pcie']);
    press('Details of GPU 0');
    expect(stream.watched.at(-1)).toEqual(['gpus', 'pcie']);
    press('Details of GPU 1');
    expect(stream.watched.at(-1)).toEqual(['gpus']);
  });
});
