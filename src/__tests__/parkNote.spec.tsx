import { Telemetry } from '../model/telemetry';
import { CommandIDs } from '../model/tokens';
import { FakeStream, makeGpu, makeInventory } from './gpuSamples';
import { makePool, makeRank } from './samples';
import { executed, host, press, show } from './screen';

const parked = { since: 0, nbytes: 41 * 2 ** 30, leased: false };
const ranks = [0, 1].map(index => {
  const gpu = { index, label: `${index}`, uuid: `GPU-${index}`, name: 'T4' };
  return makeRank(index, { gpu });
});

function showPool(changes: Parameters<typeof makePool>[0]): void {
  const telemetry = new Telemetry(new FakeStream());
  const gpus = makeInventory({ gpus: [0, 1].map(i => makeGpu(i)) });
  show({ pool: makePool({ ranks, ...changes }), telemetry, gpus });
}

function labels(): string[] {
  const tiles = [...host.querySelectorAll('.jp-dist-RankTile')];
  return tiles.map(tile => tile.textContent ?? '');
}

it('says what a parked pool keeps, and resumes it', () => {
  showPool({ state: 'SUSPENDED', parked });
  expect(host.querySelector('.jp-dist-StatePill')?.textContent).toBe('Parked');
  expect(host.textContent).toContain(
    'others can use GPUs 0, 1. This machine keeps 41.0 GiB of them in memory.'
  );
  expect(labels().every(label => label.includes('parked'))).toBe(true);
  press('Resume');
  expect(executed).toEqual([{ id: CommandIDs.resumePool, pool: 'p1' }]);
});

it('says what a pool waits for that is to be resumed, and leaves it parked', () => {
  const line = { place: 2, expected: null, certain: false };
  const reason = 'GPU 1 is leased by bob.';
  showPool({
    state: 'SUSPENDED',
    parked,
    parking: { resume: true, reason, line, failure: null }
  });
  expect(host.textContent).toContain(
    'Resuming the pool. GPU 1 is leased by bob. #2 in line'
  );
  press('Stay Parked');
  expect(executed).toEqual([{ id: CommandIDs.parkPool, pool: 'p1' }]);
});

it.each(['RUNNING', 'SUSPENDED'] as const)(
  'says why a %s pool stays as it is',
  state => {
    const said = { code: 'x', message: 'The driver failed.', hint: 'Wait.' };
    const failure = { ...said, rank: null, stderr: [] };
    const parking = { resume: true, reason: '', line: null, failure };
    showPool({ state, parked, parking });
    expect(host.textContent).toContain('The driver failed. Wait.');
    const buttons = [...host.querySelectorAll('button')];
    const hasResume = buttons.some(one => one.textContent === 'Resume');
    expect(hasResume).toBe(state === 'SUSPENDED');
  }
);
