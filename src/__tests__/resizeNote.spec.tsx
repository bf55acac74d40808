import { Telemetry } from '../model/telemetry';
import { CommandIDs } from '../model/tokens';
import {
  FakeStream,
  makeGpu,
  makeGpusMessage,
  makeInventory
} from './gpuSamples';
import { makePool } from './samples';
import { executed, host, press, show } from './screen';

const gpus = makeInventory({ gpus: [0, 1, 2, 3].map(i => makeGpu(i)) });

function showPool(changes: Parameters<typeof makePool>[0]): void {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  stream.received.emit(makeGpusMessage({ inventory: gpus }));
  telemetry.watch('gpus');
  stream.received.emit({ type: 'processes', gpus: {} });
  show({ pool: makePool(changes), telemetry, gpus });
}

it('says what a pool waits for that is to grow, and leaves the line', () => {
  const line = { place: 3, expected: null, certain: false };
  const reason = 'GPU 3 is leased by bob.';
  showPool({ resizing: { num_ranks: 4, reason, line, failure: null } });
  expect(host.textContent).toContain(
    'Resizing to 4 ranks. GPU 3 is leased by bob. #3 in line'
  );
  press('Cancel');
  expect(executed).toEqual([
    { id: CommandIDs.resizePool, pool: 'p1', ranks: 2 }
  ]);
});

it('says why a pool kept its size', () => {
  const said = { code: 'x', message: 'No GPU came.', hint: 'Try again.' };
  const failure = { ...said, rank: null, stderr: [] };
  showPool({ resizing: { num_ranks: 4, reason: '', line: null, failure } });
  expect(host.textContent).toContain('No GPU came. Try again.');
});

it('offers to grow once GPUs are free for ranks that were asked for', () => {
  showPool({ wanted_ranks: 3 });
  expect(host.textContent).toContain('1 more GPU is free.');
  press('Grow to 3 ranks');
  expect(executed).toEqual([
    { id: CommandIDs.resizePool, pool: 'p1', ranks: 3 }
  ]);
  showPool({ wanted_ranks: 2 });
  expect(host.textContent).not.toContain('free.');
});
