import type { JupyterFrontEnd } from '@jupyterlab/application';
import { RenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';

import plugins from '..';
import { modelPlugin } from '../model/plugin';
import { IPoolsModel } from '../model/tokens';
import { trans } from '../model/trans';

const others = plugins.filter(
  plugin => plugin !== modelPlugin && !plugin.requires?.includes(IPoolsModel)
);

it.each(others.map(plugin => [plugin.id, plugin] as const))(
  '%s translates its messages without the pools',
  (_, { activate, requires }) => {
    const bundle = Object.create(nullTranslator.load('')) as object;
    const translator = { load: () => bundle };
    const rendermime = new RenderMimeRegistry();
    const services = requires?.map(token =>
      token === ITranslator ? translator : rendermime
    );
    const app = { commands: new CommandRegistry(), serviceManager: {} };
    void activate(app as unknown as JupyterFrontEnd, ...services!);
    expect(trans).toBe(bundle);
  }
);
