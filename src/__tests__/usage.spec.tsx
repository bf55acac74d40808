import { PoolView } from '../panel/pool/poolView';
import { card, meter, showGpus, tell } from './gpuScreen';
import {
  GPU_0,
  makeGpusMessage,
  makeInventory,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { makePool, makeRank } from './samples';
import { host, press, show } from './screen';

const GB = 2 ** 30;

describe('on a machine without a GPU', () => {
  const inventory = makeInventory({ gpus: [], reason: 'No GPU.' });

  it('shows what each rank uses', () => {
    const pool = makePool();
    showGpus(makeGpusMessage({ inventory }), {
      pool,
      pools: new Map([['p1', pool]])
    });
    tell({
      type: 'usage',
      pools: { p1: [makeUsage(0, { cpu: 187.4 }), null] }
    });
    expect(card('Rank 0').textContent).toBe(
      'Rank 0train.ipynb187 %1.0 GiB of memorypid 1000'
    );
    expect(meter('CPU use of rank 0')?.getAttribute('aria-valuenow')).toBe(
      '187'
    );
    expect(card('Rank 1').textContent).toBe('Rank 1train.ipynb––');
  });

  it('folds many ranks', () => {
    const ranks = [...Array(64).keys()].map(rank => makeRank(rank));
    const pool = makePool({ ranks });
    showGpus(makeGpusMessage({ inventory }), {
      pool,
      pools: new Map([['p1', pool]])
    });
    const cards = () => host.querySelectorAll('li').length;
    expect(cards()).toBe(8);
    press('Show 56 more');
    expect(cards()).toBe(64);
    press('Show fewer');
    expect(cards()).toBe(8);
  });
});

describe('a rank tile', () => {
  it('shows the CPU and the memory of its process', () => {
    const telemetry = makeTelemetry({
      type: 'usage',
      pools: { p1: [makeUsage(0), null] }
    });
    show({ pool: makePool(), telemetry }, PoolView);
    expect(card('Rank 0').textContent).toMatch(/1\.0 GiBpid 1000$/);
    expect(meter('CPU use of rank 0')?.getAttribute('aria-valuenow')).toBe(
      '50'
    );
    expect(meter('CPU use of rank 1')).toBeNull();
  });

  it('shows how busy its GPU is, and what torch has on it', () => {
    const usage = makeUsage(0, { allocated: 31.2 * GB, reserved: 33 * GB });
    const telemetry = makeTelemetry(
      makeGpusMessage(),
      { type: 'sample', time: 1, values: { utilization: [91, 0] } },
      { type: 'usage', pools: { p1: [usage] } }
    );
    show(
      {
        pool: makePool({
          ranks: [makeRank(0, { gpu: GPU_0, device: 'cuda:0' })]
        }),
        telemetry
      },
      PoolView
    );
    expect(card('Rank 0').textContent).toMatch(/31\.2 GiB allocatedpid 1000$/);
    expect(
      card('Rank 0').querySelector(
        'span[title="31.2 GiB allocated, 33.0 GiB reserved by PyTorch"]'
      )
    ).not.toBeNull();
    expect(
      meter('Utilization of the GPU of rank 0')?.getAttribute('aria-valuenow')
    ).toBe('91');
  });
});
