import { CommandRegistry } from '@lumino/commands';

import type { IPool } from '../model/contract';
import { RunningPools } from '../panel/running';
import { CommandIDs } from '../model/tokens';
import {
  emitChanged,
  dialog,
  dialogSays,
  makeModel,
  makePool,
  makeRank,
  until
} from './samples';

const busy = [makeRank(0, { state: 'busy' }), makeRank(1)];
const old = makePool({ id: 'p0', state: 'COMPLETED', ended: 90 });
const first = makePool({ name: 'a/train.ipynb', ranks: busy });
const orphan = makePool({ id: 'p2', name: '', created: 60, orphaned: 90 });

function makeManager(pools: IPool[], opening = () => Promise.resolve()) {
  const model = makeModel({
    pools: new Map(pools.map(pool => [pool.id, pool]))
  });
  const commands = new CommandRegistry();
  const executed: unknown[] = [];
  for (const id of [
    CommandIDs.openPanel,
    CommandIDs.stopPool,
    'docmanager:open'
  ]) {
    commands.addCommand(id, {
      execute: args => {
        executed.push({ id, ...args });
        return id === 'docmanager:open' ? opening() : undefined;
      }
    });
  }
  const manager = new RunningPools(model, commands);
  const changed = () => emitChanged(model);
  return { model, manager, executed, changed };
}

describe('RunningPools', () => {
  it('lists the pools that live, the oldest first', () => {
    const { manager } = makeManager([orphan, first, old]);
    const items = manager.running();
    expect(
      items.map(item => `${String(item.label())}: ${item.detail?.()}`)
    ).toEqual([
      'train.ipynb: 2 ranks · busy',
      'p2: 2 ranks · its kernel is gone'
    ]);
    expect(items[0].labelTitle?.()).toMatch('a/train.ipynb');
  });

  it('opens the panel, and the notebook of the pool', async () => {
    const { manager, executed } = makeManager([first, orphan]);
    const [item, other] = manager.running();
    item.open?.();
    await until(() => executed.length === 2);
    expect(executed).toEqual([
      { id: CommandIDs.openPanel },
      { id: 'docmanager:open', path: 'a/train.ipynb' }
    ]);
    other.open?.();
    await until(() => executed.length === 3);
    expect(executed[2]).toEqual({ id: CommandIDs.openPanel });
  });

  it('says when the notebook is not there any more', async () => {
    const missing = () => Promise.reject(new Error('No such file'));
    const { manager } = makeManager([first], missing);
    manager.running()[0].open?.();
    await dialogSays('“a/train.ipynb” cannot be opened');
    await dialogSays('No such file');
    dialog()?.querySelector('button')?.click();
  });

  it('has one stopped by the command that asks, or all that are not stopping', () => {
    const ending = makePool({ id: 'p3', state: 'COMPLETING' });
    const { model, manager, executed } = makeManager([
      ...[first, orphan, ending, old]
    ]);
    manager.running()[0].shutdown?.();
    expect(executed).toEqual([{ id: CommandIDs.stopPool, pool: 'p1' }]);
    expect(model.stop).not.toHaveBeenCalled();
    manager.shutdownAll();
    expect(jest.mocked(model.stop).mock.calls).toEqual([['p1'], ['p2']]);
  });

  it('tells of what can be seen in the list, and of nothing else', () => {
    const { model, manager, changed } = makeManager([first]);
    const told = jest.fn();
    manager.runningChanged.connect(told);
    changed();
    expect(told).toHaveBeenCalledTimes(1);
    changed();
    expect(told).toHaveBeenCalledTimes(1);
    Object.assign(model, { pools: new Map() });
    changed();
    expect(told).toHaveBeenCalledTimes(2);
  });

  it('asks the server again only when the connection is gone', () => {
    const { model, manager } = makeManager([]);
    manager.refreshRunning();
    expect(model.reconnect).not.toHaveBeenCalled();
    Object.assign(model, { connection: { state: 'missing' } });
    manager.refreshRunning();
    expect(model.reconnect).toHaveBeenCalled();
  });
});
