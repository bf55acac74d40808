import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';

import type { IPool } from '../model/contract';
import { CommandIDs } from '../model/tokens';
import { runAsJobPlugin } from '../queue/submit/runAsJob';
import { makeInventory } from './gpuSamples';
import { makeModel, makePool, makeRank } from './samples';

/** What the command is called for the current notebook, on a machine with GPUs. */
function labelWith(pool: IPool | null): string {
  const commands = new CommandRegistry();
  const model = makeModel({
    pools: new Map(pool ? [['p1', pool]] : []),
    gpus: makeInventory(),
    defaultRanks: 2
  });
  const currentWidget = {
    sessionContext: { session: { kernel: { id: 'k1' } } }
  };
  void runAsJobPlugin.activate(
    { commands, serviceManager: {} } as unknown as JupyterFrontEnd,
    model,
    null,
    { currentWidget, currentChanged: new Signal<object, null>({}) },
    null
  );
  return commands.label(CommandIDs.runNotebookAsJob);
}

describe('Run as Job', () => {
  const gpu = { index: 3, label: '3', uuid: 'GPU-3', name: 'H100' };

  it.each<[string, IPool | null, string]>([
    ['without ranks', null, 'Run as Job on 2 GPUs…'],
    ['of ranks without GPUs', makePool(), 'Run as Job…'],
    [
      'of ranks that share a GPU which their torch cannot use',
      makePool({ ranks: [makeRank(0, { gpu }), makeRank(1, { gpu })] }),
      'Run as Job on 1 GPU…'
    ]
  ])('says how many GPUs a notebook %s gets', (_, pool, label) => {
    expect(labelWith(pool)).toBe(label);
  });
});
