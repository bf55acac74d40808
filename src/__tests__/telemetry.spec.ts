import type { TelemetryMessage } from '../model/gpuContract';
import { Telemetry } from '../model/telemetry';
import {
  FakeStream,
  makeGpu,
  makeGpusMessage,
  makeInventory,
  makeProcess,
  makeUsage
} from './gpuSamples';

describe('Telemetry', () => {
  let stream: FakeStream;
  let telemetry: Telemetry;

  beforeEach(() => {
    // Curves move on every few seconds, which makes another reading of each.
    jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    stream = new FakeStream();
    telemetry = new Telemetry(stream);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  const tell = (...messages: TelemetryMessage[]) =>
    messages.forEach(message => stream.received.emit(message));

  const sample = (time: number, values: object): TelemetryMessage => ({
    type: 'sample',
    time,
    values
  });

  it('keeps what a sample does not mention, and what cannot be had', () => {
    tell(
      makeGpusMessage({ errors: { 'GPU-1': { power: 'unsupported' } } }),
      sample(1000, { utilization: [10, 20], power: [600, null] }),
      sample(1001, { utilization: [10, 30] })
    );
    expect(telemetry.gpu('GPU-0').values).toEqual({
      utilization: 10,
      power: 600
    });
    expect(telemetry.gpu('GPU-1').values).toEqual({
      utilization: 30,
      power: null
    });
    expect(telemetry.gpu('GPU-1').errors.power).toBe('unsupported');
    expect(telemetry.gpu('GPU-9').values).toEqual({});
  });

  it('gives the same reading while nothing changes', () => {
    tell(makeGpusMessage(), sample(1000, { utilization: [10, 20] }));
    const [first, second] = [telemetry.gpu('GPU-0'), telemetry.gpu('GPU-1')];
    tell(sample(1001, {}), sample(1002, { utilization: [10, 21] }));
    expect(telemetry.gpu('GPU-0')).toBe(first);
    expect(telemetry.gpu('GPU-1')).not.toBe(second);
  });

  it('draws the past, then goes on with samples', () => {
    const times = Array.from({ length: 20 }, (_, index) => 900 + 7.5 * index);
    const utilization = times.map((_, index) => index);
    tell(
      makeGpusMessage(),
      { type: 'history', step: 7.5, times, gpus: { 'GPU-0': { utilization } } },
      sample(1051, { utilization: [50, 0] })
    );
    expect(telemetry.gpu('GPU-0').curve.slice(-4)).toEqual([17, 18, 19, 50]);
    expect(telemetry.gpu('GPU-1').curve.slice(-2)).toEqual([null, 0]);
    // A page that comes back is told the past again.
    tell({ type: 'history', step: 7.5, times: [1051], gpus: {} });
    expect(telemetry.gpu('GPU-0').curve.every(value => value === null)).toBe(
      true
    );
  });

  it('leaves a gap where nobody has sampled', () => {
    const times = [0, 8, 16, 60, 68, 76].map(time => 900 + time);
    const utilization = times.map(() => 50);
    tell(makeGpusMessage(), {
      type: 'history',
      step: 8,
      times,
      gpus: { 'GPU-0': { utilization } }
    });
    const { curve } = telemetry.gpu('GPU-0');
    expect(curve.slice(-11).map(value => value !== null)).toEqual([
      ...[true, true, true],
      ...[false, false, false, false, false],
      ...[true, true, true]
    ]);
  });

  it('is stale while the server says so, with a gap in the curves', () => {
    tell(
      makeGpusMessage(),
      sample(1000, { utilization: [50, 50] }),
      makeGpusMessage({ stale_since: 1001, trouble: 'The driver hangs.' })
    );
    expect(telemetry.trouble).toEqual({
      since: 1001,
      message: 'The driver hangs.'
    });
    tell(makeGpusMessage(), sample(1060, { utilization: [60, 60] }));
    expect(telemetry.trouble).toBeNull();
    const { curve } = telemetry.gpu('GPU-0');
    expect(curve.at(-1)).toBe(60);
    expect(curve.at(-2)).toBeNull();
    expect(curve).toContain(50);
  });

  it('follows the driver to other GPUs', () => {
    const inventory = makeInventory({ gpus: [makeGpu(1)] });
    tell(
      makeGpusMessage(),
      sample(1000, { utilization: [10, 20] }),
      makeGpusMessage({ inventory }),
      sample(1001, { utilization: [30] })
    );
    expect(telemetry.gpu('GPU-0').values).toEqual({});
    expect(telemetry.gpu('GPU-1').values).toEqual({ utilization: 30 });
  });

  it('knows who works on a GPU, and who has it', () => {
    const lease = {
      user: 'ann',
      pid: 5,
      since: 1,
      pool: null,
      notebook: 'a.ipynb',
      shared: false
    };
    expect(telemetry.gpu('GPU-0').processes).toBeNull();
    tell(makeGpusMessage({ leases: { 'GPU-0': lease } }), {
      type: 'processes',
      gpus: { 'GPU-1': [makeProcess()] }
    });
    expect(telemetry.gpu('GPU-0')).toMatchObject({ lease, processes: [] });
    expect(telemetry.gpu('GPU-1').processes).toHaveLength(1);
  });

  it('knows what ranks use, until their pool is gone', () => {
    expect(telemetry.rank('p1', 0).usage).toBeNull();
    tell({ type: 'usage', pools: { p1: [makeUsage(0), null] } });
    const reading = telemetry.rank('p1', 0);
    expect(reading.usage?.cpu).toBe(50);
    expect(reading.curve.at(-1)).toBe(50);
    expect(telemetry.rank('p1', 1).usage).toBeNull();
    tell({
      type: 'usage',
      pools: { p1: [makeUsage(0), makeUsage(1, { cpu: 9 })] }
    });
    expect(telemetry.rank('p1', 0)).toBe(reading);
    expect(telemetry.rank('p1', 1).usage?.cpu).toBe(9);
    tell({ type: 'usage', pools: {} });
    expect(telemetry.rank('p1', 0).usage).toBeNull();
  });

  it('asks for readings while somebody looks, and for PCIe only with them', () => {
    const details = telemetry.watch('pcie');
    const panel = telemetry.watch('gpus');
    const other = telemetry.watch('gpus');
    panel.dispose();
    details.dispose();
    other.dispose();
    other.dispose();
    expect(stream.watched).toEqual([
      [],
      ['gpus', 'pcie'],
      ['gpus', 'pcie'],
      ['gpus', 'pcie'],
      ['gpus'],
      []
    ]);
  });

  it('asks for nothing while the page is hidden', () => {
    telemetry.watch('gpus');
    const hidden = jest.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    document.dispatchEvent(new Event('visibilitychange'));
    expect(stream.watched.at(-1)).toEqual([]);
    hidden.mockRestore();
    document.dispatchEvent(new Event('visibilitychange'));
    expect(stream.watched.at(-1)).toEqual(['gpus']);
  });

  it('does not take for current what it was told before nobody looked', () => {
    const waits = makeUsage(0, { call: 'all_reduce', waiting_since: 1 });
    const usage: TelemetryMessage = { type: 'usage', pools: { p1: [waits] } };
    const watching = telemetry.watch('gpus');
    expect(telemetry.isCurrent).toBe(false);
    tell(makeGpusMessage(), { type: 'processes', gpus: {} }, usage);
    expect(telemetry.isCurrent).toBe(true);
    watching.dispose();
    expect(telemetry.isCurrent).toBe(false);
    expect(telemetry.rank('p1', 0).usage).toBeNull();
    // Messages may have been on their way.
    tell(makeGpusMessage(), { type: 'processes', gpus: {} }, usage);
    expect(telemetry.isCurrent).toBe(false);
    telemetry.watch('gpus');
    expect(telemetry.rank('p1', 0).usage).toBeNull();
  });

  it('does not take for current what it was told before the connection was lost', () => {
    telemetry.watch('gpus');
    tell(
      makeGpusMessage(),
      { type: 'processes', gpus: {} },
      { type: 'usage', pools: { p1: [makeUsage(0)] } }
    );
    stream.received.emit({ type: 'pools', pools: [], time: 1000 });
    expect(telemetry.isCurrent).toBe(false);
    expect(telemetry.rank('p1', 0).usage).toBeNull();
  });
});
