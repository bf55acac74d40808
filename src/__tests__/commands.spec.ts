import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';

import { commandsPlugin } from '../panel/commands';
import type { IStartSchema } from '../model/contract';
import { CommandIDs } from '../model/tokens';
import {
  dialog,
  dialogSays,
  makeModel,
  makePool,
  makeRank,
  makeStart
} from './samples';
import { makeParkable, makeParking, parked } from './parkSamples';
import type { IFakeModel } from './samples';

function addCommands(
  model: IFakeModel,
  start = makeStart(model)
): CommandRegistry {
  const commands = new CommandRegistry();
  const app = { commands } as JupyterFrontEnd;
  void commandsPlugin.activate(app, model, model, start, null);
  return commands;
}

describe('commands', () => {
  const pool = makePool({ state: 'CONFIGURING' });
  const orphan = makePool({
    id: 'p2',
    kernel_id: 'k2',
    name: 'old/eval.ipynb',
    orphaned: 90,
    ranks: [makeRank(0, { state: 'busy' }), makeRank(1)]
  });
  const pools = new Map([pool, orphan].map(pool => [pool.id, pool]));

  it('are about the pool that they name, or the current one', async () => {
    const model = makeModel({ pool, pools });
    const commands = addCommands(model);
    await commands.execute(CommandIDs.stopPool);
    expect(model.stop).toHaveBeenLastCalledWith('p1');
    const { interruptRanks } = CommandIDs;
    expect(commands.isEnabled(interruptRanks)).toBe(false);
    expect(commands.isEnabled(interruptRanks, { pool: 'p2' })).toBe(true);
    await commands.execute(interruptRanks, { pool: 'p2' });
    expect(model.interrupt).toHaveBeenLastCalledWith('p2');
  });

  it.each([
    [CommandIDs.stopPool, 'stop'],
    [CommandIDs.restartRanks, 'restart']
  ] as const)('ask before they lose variables: %s', async (command, action) => {
    const model = makeModel({ pool, pools });
    const done = addCommands(model).execute(command, { pool: 'p2' });
    await dialogSays(
      'The variables on all 2 ranks of eval.ipynb will be lost.'
    );
    expect(model[action]).not.toHaveBeenCalled();
    dialog()?.querySelector<HTMLElement>('.jp-mod-warn')?.click();
    await done;
    expect(model[action]).toHaveBeenCalledWith('p2');
  });

  it('start ranks for the notebook that was current then', async () => {
    const model = makeModel({ startSchema: () => answer });
    let tell: (schema: IStartSchema) => void = () => undefined;
    const answer = new Promise<IStartSchema>(resolve => (tell = resolve));
    const done = addCommands(model).execute(CommandIDs.startPool);
    const other = {
      path: 'b.ipynb',
      kernelId: 'k2',
      sessionId: 'sk2',
      isPython: true
    };
    Object.assign(model, { notebook: other });
    tell({ type: 'object', properties: {} });
    await done;
    expect(model.start).toHaveBeenCalledWith({}, 'k1');
  });

  it('start ranks once, also while it is being asked what to start', async () => {
    let tell: (schema: IStartSchema) => void = () => undefined;
    const answer = new Promise<IStartSchema>(resolve => (tell = resolve));
    const model = makeModel({ startSchema: () => answer });
    const commands = addCommands(model);
    const { startPool } = CommandIDs;
    const changed = jest.fn();
    commands.commandChanged.connect((_, { id }) => changed(id));
    const done = [commands.execute(startPool)];
    expect(commands.isEnabled(startPool)).toBe(false);
    expect(changed).toHaveBeenCalledWith(startPool);
    done.push(commands.execute(startPool));
    tell({ type: 'object', properties: {} });
    await Promise.all(done);
    expect(model.start).toHaveBeenCalledTimes(1);
    expect(commands.isEnabled(startPool)).toBe(true);
  });

  it('start no ranks where the kernel is not Python', () => {
    const { notebook } = makeModel();
    const other = { ...notebook!, isPython: false };
    const isEnabled = (changes = {}) =>
      addCommands(makeModel(changes)).isEnabled(CommandIDs.startPool);
    expect(isEnabled()).toBe(true);
    expect(isEnabled({ notebook: other })).toBe(false);
  });

  it('leave the number of ranks to the server where only that knows it', async () => {
    const properties = {
      num_ranks: {
        type: 'integer',
        title: '',
        description: '',
        'x-widget': 'ranks'
      } as const
    };
    const schema: IStartSchema = { type: 'object', properties };
    const model = makeModel({
      defaultRanks: null,
      startSchema: () => Promise.resolve(schema)
    });
    await addCommands(model).execute(CommandIDs.startPool);
    expect(model.start).toHaveBeenCalledWith({}, 'k1');
  });

  it('open the form where something that was chosen is wrong', async () => {
    const properties = {
      env: {
        type: 'object',
        title: '',
        description: '',
        'x-widget': 'env'
      } as const
    };
    const schema: IStartSchema = { type: 'object', properties };
    const model = makeModel({ startSchema: () => Promise.resolve(schema) });
    const start = makeStart(model);
    start.change('train.ipynb', 'env', [{ name: 'TOKEN', value: null }]);
    const commands = addCommands(model, start);
    const opened = jest.fn();
    commands.addCommand(CommandIDs.openPanel, { execute: opened });
    await commands.execute(CommandIDs.startPool);
    expect(model.start).not.toHaveBeenCalled();
    expect(opened).toHaveBeenCalled();
  });

  it('replace dead ranks without asking', async () => {
    const ranks = [makeRank(0), makeRank(1, { state: 'dead' })];
    const model = makeModel({ pool: makePool({ ranks }), pools });
    await addCommands(model).execute(CommandIDs.restartRanks, { dead: true });
    expect(model.restart).toHaveBeenCalledWith('p1', { ranks: [1] });
  });

  it('park a pool that can be, after a question', async () => {
    const pool = makeParkable();
    const model = makeModel({ pool, pools, park: jest.fn() });
    const commands = addCommands(model);
    expect(commands.isEnabled(CommandIDs.parkPool)).toBe(true);
    expect(commands.isEnabled(CommandIDs.resumePool)).toBe(false);
    const parking = commands.execute(CommandIDs.parkPool);
    await dialogSays('never on a GPU');
    dialog()?.querySelector<HTMLElement>('.jp-mod-warn')?.click();
    await parking;
    expect(model.park).toHaveBeenCalledWith('p1');
    const other = addCommands(makeModel({ pool: makePool(), pools }));
    expect(other.isEnabled(CommandIDs.parkPool)).toBe(false);
  });

  it('resume a parked pool, and let it stay parked', async () => {
    const there = makeParkable({ state: 'SUSPENDED', parked });
    const model = makeModel({
      ...{ pool: there, pools },
      ...{ park: jest.fn(), resume: jest.fn() }
    });
    const commands = addCommands(model);
    const { parkPool, resumePool, resizePool, restartRanks } = CommandIDs;
    const enabled = () =>
      [parkPool, resumePool, resizePool, restartRanks].map(id =>
        commands.isEnabled(id)
      );
    expect(enabled()).toEqual([false, true, false, false]);
    await commands.execute(resumePool);
    expect(model.resume).toHaveBeenCalledWith('p1');
    Object.assign(model, { pool: { ...there, parking: makeParking() } });
    expect(enabled()).toEqual([true, false, false, false]);
    expect(commands.label(parkPool)).toBe('Stay Parked');
    await commands.execute(parkPool);
    expect(model.park).toHaveBeenCalledWith('p1');
  });

  it('leave lost nodes only after a question', async () => {
    const lost = makePool({ lost_nodes: ['n2'] });
    const model = makeModel({ pool: lost, pools });
    const commands = addCommands(model);
    const leaving = commands.execute(CommandIDs.leaveLostNodes);
    await dialogSays('Go on without node n2?');
    dialog()?.querySelector<HTMLElement>('.jp-mod-warn')?.click();
    await leaving;
    expect(model.restart).toHaveBeenCalledWith('p1', {
      without_lost_nodes: true
    });
    const whole = addCommands(makeModel({ pool: makePool(), pools }));
    expect(whole.isEnabled(CommandIDs.leaveLostNodes)).toBe(false);
  });

  it('do nothing to all ranks for one that is gone', async () => {
    const model = makeModel({ pool: makePool(), pools });
    const commands = addCommands(model);
    await commands.execute(CommandIDs.interruptRanks, { rank: 7 });
    await commands.execute(CommandIDs.restartRanks, { rank: 7 });
    expect(model.interrupt).not.toHaveBeenCalled();
    expect(model.restart).not.toHaveBeenCalled();
  });

  it('are off for a pool that is gone', () => {
    const commands = addCommands(makeModel({ pool, pools }));
    expect(commands.isEnabled(CommandIDs.stopPool, { pool: 'p3' })).toBe(false);
  });
});
