import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import type { IPoolsModel } from '../tokens';
import type { Clock } from './clock';

/** What every part of the panel is given. */
export interface IPanelServices {
  model: IPoolsModel;
  commands: CommandRegistry;
  clock: Clock;
  trans: TranslationBundle;
}
