import type { TelemetryMessage } from '../model/gpuContract';
import { GpuList, GpuSummary } from '../panel/gpus/gpuList';
import { card, meter, showGpus, tell } from './gpuScreen';
import {
  GPU_0,
  makeGpu,
  makeGpusMessage,
  makeInventory,
  makeProcess
} from './gpuSamples';
import { makePool, makeRank } from './samples';
import { host, show } from './screen';

const GB = 2 ** 30;

describe('GpuList', () => {
  it('says why there is no GPU', () => {
    const reason = 'No NVIDIA GPU found: ranks run on the CPU.';
    showGpus(
      makeGpusMessage({ inventory: makeInventory({ gpus: [], reason }) })
    );
    expect(host.textContent).toBe(reason);
  });

  it('says that it looks for the GPUs before they are known', () => {
    show({ gpus: null, pools: new Map([['p1', makePool()]]) }, GpuList);
    expect(host.textContent).toBe('Looking for GPUs…');
  });

  it('names a GPU that is lost, beside those that are not', () => {
    const problem = 'GPU 2 has fallen off the bus.';
    showGpus(
      makeGpusMessage({ inventory: makeInventory({ problems: [problem] }) })
    );
    expect(host.querySelector('[role=status]')?.textContent).toBe(problem);
    expect(host.querySelectorAll('li')).toHaveLength(2);
  });

  it('shows how busy a GPU is', () => {
    showGpus(makeGpusMessage());
    expect(card('GPU 0').textContent).toBe(
      'GPU 0H100 80GB–– / 80 GiB– · –Details'
    );
    tell({
      type: 'sample',
      time: 1000,
      values: {
        utilization: [91, 0],
        memory_used: [34.1 * GB, 0],
        power: [612.4, 80],
        power_limit: [700, 700],
        temperature: [64, 30],
        clock_sm: [1410, 300],
        throttle: ['power cap, thermal slowdown', '']
      }
    });
    expect(card('GPU 0').textContent).toBe(
      'GPU 0H100 80GB91 %34.1 / 80 GiB612 W · 64 °C' +
        'power cap · thermal slowdown · clocks 1410 MHzDetails'
    );
    expect(card('GPU 1').textContent).toBe(
      'GPU 1H100 80GB0 %0.0 / 80 GiB80 W · 30 °CDetails'
    );
    expect(meter('Utilization of GPU 0')?.getAttribute('aria-valuenow')).toBe(
      '91'
    );
    expect(meter('Memory of GPU 0')?.getAttribute('aria-valuetext')).toBe(
      '34.1 GiB of 80 GiB · others and the driver: 34.1 GiB'
    );
    expect(card('GPU 0').querySelectorAll('polyline')).toHaveLength(1);
  });

  it('groups the GPUs of other nodes below their names', () => {
    const gpus = [makeGpu(0, { uuid: 'GPU-n2-0', node: 'n2' })];
    const reason = 'Node n3 has been unreachable since 14:03:12.';
    showGpus(
      makeGpusMessage({
        nodes: {
          n2: makeInventory({ gpus }),
          n3: makeInventory({ gpus: [], reason })
        }
      })
    );
    tell({
      type: 'sample',
      time: 1000,
      values: { utilization: [91, 0, 77] }
    });
    const heads = [...host.querySelectorAll('.jp-dist-NodeHead')];
    expect(heads.map(({ textContent }) => textContent)).toEqual([
      'This machine',
      'n2',
      `n3${reason}`
    ]);
    const list = host.querySelector('[aria-label="GPUs of node n2"]');
    expect(list?.textContent).toContain('GPU 0H100 80GB77 %');
    expect(card('GPU 0 on n2')).toBe(list?.firstElementChild);
    expect(card('GPU 0').textContent).toContain('91 %');
  });

  it('shows no bar of memory where the driver does not tell it', () => {
    const gpus = [makeGpu(0, { memory_total: 0 })];
    showGpus(makeGpusMessage({ inventory: makeInventory({ gpus }) }));
    expect(meter('Memory of GPU 0')).toBeNull();
    expect(card('GPU 0').textContent).toBe('GPU 0H100 80GB––– · –Details');
  });

  it('does not touch a card of which nothing has changed', async () => {
    showGpus(makeGpusMessage());
    const sample = (time: number, second: number): TelemetryMessage => ({
      type: 'sample',
      time,
      values: { utilization: [50, second], temperature: [40, 40] }
    });
    tell(sample(1000, 10));
    const changed: Node[] = [];
    const observer = new MutationObserver(records =>
      changed.push(...records.map(({ target }) => target))
    );
    observer.observe(host, {
      subtree: true,
      childList: true,
      attributes: true,
      characterData: true
    });
    tell(sample(1001, 20));
    await Promise.resolve();
    observer.disconnect();
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.filter(node => card('GPU 0').contains(node))).toEqual([]);
  });

  it('says why a value is missing, and never shows 0 for it', () => {
    showGpus(
      makeGpusMessage({
        errors: {
          'GPU-0': { power: 'unsupported', utilization: 'no permission' }
        }
      })
    );
    tell({
      type: 'sample',
      time: 1000,
      values: { utilization: [null, 1], power: [null, 1] }
    });
    const dashes = [...card('GPU 0').querySelectorAll('span[role=img]')];
    expect(dashes.map(dash => dash.getAttribute('title'))).toEqual([
      'Not permitted by the driver',
      'No reading',
      'Not supported by this GPU or its driver',
      'No reading'
    ]);
    expect(card('GPU 0').textContent).not.toMatch('0 %');
    expect(meter('Utilization of GPU 0')).toBeNull();
  });

  it('divides the memory into ranks and others, in the colour of the rank', () => {
    const pool = makePool({ ranks: [makeRank(3, { gpu: GPU_0 })] });
    showGpus(makeGpusMessage(), { pool, pools: new Map([['p1', pool]]) });
    tell(
      { type: 'sample', time: 1, values: { memory_used: [40 * GB, 0] } },
      {
        type: 'processes',
        gpus: {
          'GPU-0': [
            makeProcess({
              memory: 20 * GB,
              who: { kind: 'rank', pool: 'p1', rank: 3 }
            }),
            makeProcess({ pid: 5, memory: 10 * GB })
          ]
        }
      }
    );
    const parts = [...(meter('Memory of GPU 0')?.children ?? [])];
    expect(
      parts.map(part => [
        part.className,
        part.getAttribute('data-colour'),
        part.getAttribute('style')
      ])
    ).toEqual([
      ['jp-mod-rank', '3', 'width: 25%;'],
      ['jp-mod-other', null, 'width: 12.5%;'],
      ['jp-mod-rest', null, 'width: 12.5%;']
    ]);
    expect(
      card('GPU 0').querySelector('svg')?.getAttribute('data-colour')
    ).toBe('3');
  });

  it('keeps old readings, and says since when they are', () => {
    const since = new Date(2026, 0, 1, 12, 3, 11).getTime() / 1000;
    showGpus(
      makeGpusMessage({ stale_since: since, trouble: 'The driver hangs.' })
    );
    expect(host.querySelector('[role=status]')?.textContent).toBe(
      'Stale since Jan 1, 12:03: The driver hangs.'
    );
    expect(host.querySelector('ul.jp-mod-stale > li')).not.toBeNull();
    tell(makeGpusMessage());
    expect(host.querySelector('[role=status]')).toBeNull();
    expect(host.querySelector('.jp-mod-stale')).toBeNull();
  });

  it('says what else is wrong without calling readings old', () => {
    showGpus(makeGpusMessage({ trouble: 'Leases cannot be read.' }));
    expect(host.querySelector('[role=status]')?.textContent).toBe(
      'Leases cannot be read.'
    );
    expect(host.querySelector('.jp-mod-stale')).toBeNull();
  });

  it('groups MIG instances under their GPU', () => {
    const instance = (mig: number) =>
      makeGpu(1, {
        uuid: `MIG-${mig}`,
        mig,
        parent: 'GPU-1',
        name: 'NVIDIA H100 80GB MIG 1g.10gb'
      });
    const gpus = [makeGpu(0), instance(0), instance(1)];
    showGpus(
      makeGpusMessage({
        inventory: makeInventory({ gpus }),
        errors: { 'MIG-0': { utilization: 'unsupported' } }
      })
    );
    const group = card('GPU 1');
    expect(group.textContent).toMatch(/^GPU 1H100 80GB2 MIG instancesGPU 1:0/);
    expect(
      [...group.querySelectorAll('li')].map(li => li.getAttribute('aria-label'))
    ).toEqual(['GPU 1:0', 'GPU 1:1']);
    expect(card('GPU 1:0').querySelector('svg')).toBeNull();
    expect(card('GPU 1:1').querySelector('svg')).not.toBeNull();
  });
});

describe('GpuSummary', () => {
  it('says how many GPUs there are, and how many are in use', () => {
    showGpus(makeGpusMessage(), {}, GpuSummary);
    expect(host.textContent).toBe('2');
    tell({ type: 'processes', gpus: { 'GPU-0': [makeProcess()] } });
    expect(host.textContent).toBe('2 · 1 in use');
  });
});
