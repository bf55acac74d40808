import { PoolView } from '../panel/pool/poolView';
import { card, meter, showGpus } from './gpuScreen';
import {
  GPU_0,
  makeGpusMessage,
  makeInventory,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { makePool, makeRank } from './samples';
import { host, show } from './screen';

const GB = 2 ** 30;

it('leaves a machine without a GPU to the tiles of the ranks', () => {
  const inventory = makeInventory({ gpus: [], reason: 'No GPU.' });
  showGpus(makeGpusMessage({ inventory }), { pool: makePool() });
  expect(host.textContent).toBe('No GPU.');
});

describe('a rank tile', () => {
  it('shows the CPU and the memory of its process', () => {
    const telemetry = makeTelemetry({
      type: 'usage',
      pools: { p1: [makeUsage(0), null] }
    });
    const started = Date.now() / 1000;
    show({ pool: makePool({ started }), telemetry }, PoolView);
    expect(card('Rank 0').textContent).toMatch(/50 %idle .*1\.0 GiBpid 1000$/);
    expect(meter('CPU use of rank 0')?.getAttribute('aria-valuenow')).toBe(
      '50'
    );
    expect(meter('CPU use of rank 1')).toBeNull();
    expect(host.textContent).toMatch('CPU use, last 2 min');
    expect(card('Rank 0').querySelector('svg[role=img]')).not.toBeNull();
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
    expect(card('Rank 0').textContent).toMatch(/91 %idle .*31\.2 GiBpid 1000$/);
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
