import type { IPool } from '../model/contract';
import { Telemetry } from '../model/telemetry';
import { CommandIDs } from '../model/tokens';
import { OtherPools } from '../panel/others/otherPools';
import { PoolSummary } from '../panel/pool/poolView';
import { VariablesSection } from '../panel/variables/variablesSection';
import {
  FakeStream,
  makeGpu,
  makeGpusMessage,
  makeInventory,
  makeUsage
} from './gpuSamples';
import { failure, makeParkable, makeParking, parked } from './parkSamples';
import { makeRank } from './samples';
import type { IFakeModel } from './samples';
import { button, executed, host, press, show } from './screen';

const leased = { ...parked, leased: true };

/** Show a pool whose GPUs are busy, and whose ranks had much there. */
function showPool(
  changes: Partial<IPool>,
  Part?: Parameters<typeof show>[1],
  isOwn = true
): IFakeModel {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  const gpus = makeInventory({ gpus: [0, 1].map(i => makeGpu(i)) });
  telemetry.watch('gpus');
  stream.received.emit(makeGpusMessage({ inventory: gpus }));
  stream.received.emit({
    type: 'sample',
    time: 1,
    values: { utilization: [97, 98], memory_used: [2 ** 30, 2 ** 30] }
  });
  const usage = { allocated: 20 * 2 ** 30, reserved: 21 * 2 ** 30 };
  stream.received.emit({
    type: 'usage',
    pools: { p1: [makeUsage(0, usage), makeUsage(1, usage)] }
  });
  const pool = makeParkable(changes);
  const pools = new Map([[pool.id, pool]]);
  return show({ pool: isOwn ? pool : null, pools, telemetry, gpus }, Part);
}

const pill = () => host.querySelector('.jp-dist-StatePill')?.textContent;
const note = () => host.querySelector('.jp-dist-Note')?.textContent;
const labels = () =>
  [...host.querySelectorAll('button')].map(node => node.textContent);

it('says when a pool parks by itself', () => {
  showPool({});
  expect(host.textContent).toContain('parks after 20 min idle if others wait');
  expect(host.textContent).toContain('97 %');
  expect(note()).toBeUndefined();
});

it('says how far a pool is that is being parked, and lets its cell be stopped, or go on', () => {
  const reason = 'The ranks run a cell.';
  const ranks = makeParkable().ranks.map(
    rank => ({ ...rank, state: 'busy' }) as const
  );
  const resume = jest.fn();
  Object.assign(
    showPool({ ranks, parking: makeParking({ resume: false, reason }) }),
    { resume }
  );
  expect(pill()).toBe('Parking');
  expect(note()).toBe(`${reason}Do Not Park`);
  press('Do Not Park');
  expect(resume).toHaveBeenCalledWith('p1');
  press('Interrupt');
  expect(executed).toEqual([{ id: CommandIDs.interruptRanks, pool: 'p1' }]);
});

it('says what a parked pool keeps, and resumes it', () => {
  showPool({ state: 'SUSPENDED', parked });
  expect(pill()).toBe('Parked');
  expect(note()).toMatch(
    /^Parked for \d+ d: others can use GPUs 0, 1\. What was there \(41\.0 GiB\) is kept in the memory of this machine\. The next cell on ranks resumes the pool\.Resume$/
  );
  press('Resume');
  expect(executed).toEqual([{ id: CommandIDs.resumePool, pool: 'p1' }]);
  // What the server would refuse.
  expect(button('Interrupt').disabled).toBe(true);
  expect(button('Restart…').disabled).toBe(true);
  expect(button('Restart…').title).toBe('Resume the pool first.');
  expect(button('Stop…').disabled).toBe(false);
});

it('shows no load of GPUs that are others’', () => {
  showPool({ state: 'SUSPENDED', parked });
  const tiles = [...host.querySelectorAll('.jp-dist-RankTile')];
  expect(tiles.map(tile => tile.textContent)).toEqual([
    'Rank 0GPU 0parked20.0 GiBpid 1000',
    'Rank 1GPU 1parked20.0 GiBpid 1001'
  ]);
  expect(host.querySelector('[role=meter]')).toBeNull();
  expect(host.textContent).not.toMatch(/%|allocated|idle \d/);
});

it('says what a pool waits for that is to be resumed, and leaves it parked', () => {
  const line = { place: 2, expected: null, certain: false };
  const reason = 'GPU 1 is leased by bob.';
  showPool({
    state: 'SUSPENDED',
    parked,
    parking: makeParking({ reason, line })
  });
  expect(pill()).toBe('Waiting for GPUs');
  expect(note()).toContain('GPU 1 is leased by bob.#2 in lineParked for');
  expect(note()).not.toContain('The next cell');
  press('Stay Parked');
  expect(executed).toEqual([{ id: CommandIDs.parkPool, pool: 'p1' }]);
});

it('says that a pool comes back, with nothing to press', () => {
  const reason = '41.0 GiB are moved to the GPUs.';
  showPool({ parked: leased, parking: makeParking({ reason }) });
  expect(pill()).toBe('Resuming');
  expect(note()).toBe(reason);
});

it('says why a pool could not be resumed, and tries again', () => {
  showPool({
    state: 'SUSPENDED',
    parked,
    parking: makeParking({ failure })
  });
  expect(pill()).toBe('Parked');
  expect(note()).toContain('The driver failed. Wait.Parked for');
  press('Resume');
  expect(executed).toEqual([{ id: CommandIDs.resumePool, pool: 'p1' }]);
});

it('says why a pool could not be parked, until that is dismissed', () => {
  const resume = jest.fn();
  const model = showPool({ parking: makeParking({ resume: false, failure }) });
  Object.assign(model, { resume });
  expect(pill()).toBe('Running');
  expect(note()).toBe('The driver failed. Wait.Dismiss');
  press('Dismiss');
  expect(resume).toHaveBeenCalledWith('p1');
});

it('says that an interrupted parking has left the GPUs to the pool', () => {
  showPool({ parked: leased });
  expect(pill()).toBe('Parked');
  expect(note()).toContain('but GPUs 0, 1 are still leased to this pool.');
  expect(labels()).toContain('Resume');
});

it('says which ranks have died meanwhile, and offers no restart', () => {
  const dead = makeRank(1, { state: 'dead', stderr: ['killed'] });
  const ranks = [makeParkable().ranks[0], dead];
  showPool({ state: 'SUSPENDED', parked, ranks });
  expect(pill()).toBe('1 rank dead');
  expect(note()).toContain(
    'Rank 1 died, and its variables are lost. Resume the pool to restart it.'
  );
  expect(labels()).not.toContain('Restart rank 1');
  expect(host.textContent).toContain('Last lines of rank 1');
});

it('offers nothing that a pool on its way could not do', () => {
  const parking = makeParking({ resume: false });
  showPool({ parking, wanted_ranks: 4, idle_since: 0 });
  expect(host.textContent).not.toMatch(/Grow|Release/);
});

it('offers to park a pool that has long been idle, rather than to end it', () => {
  showPool({ idle_since: 0 });
  press('Park…');
  expect(executed).toEqual([{ id: CommandIDs.parkPool, pool: 'p1' }]);
  expect(labels()).toContain('Release…');
  showPool({ idle_since: 0, park_after: null });
  expect(labels()).not.toContain('Park…');
});

it('has its size and age beside the title of the section', () => {
  showPool({ state: 'SUSPENDED', parked }, PoolSummary);
  expect(host.textContent).toMatch(/^2 ranks · gloo · /);
});

it('says that variables are not listed while they are in the host’s memory', () => {
  showPool({ parked: leased, parking: makeParking() }, VariablesSection);
  expect(host.textContent).toContain('The pool is parked.');
});

it('shows a parked pool of another notebook without GPUs and their memory', () => {
  showPool({ state: 'SUSPENDED', parked }, OtherPools, false);
  expect(pill()).toBe('Parked');
  expect(host.textContent).toMatch(
    /2 ranksParked for \d+ d: others can use GPUs 0, 1\. What was there \(41\.0 GiB\) is kept/
  );
  showPool({ state: 'SUSPENDED', parked, orphaned: 9 }, OtherPools, false);
  expect(pill()).toBe('Orphaned');
});
