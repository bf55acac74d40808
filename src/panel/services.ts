import type { CommandRegistry } from '@lumino/commands';

import type { IStartModel } from '../model/startModel';
import type { ICurrentNotebook, IPoolsModel } from '../model/tokens';
import type { UiState } from '../model/uiState';
import type { IVariablesModel } from '../model/variables';
import type { Clock } from '../ui/clock';

/** What every part of the panel is given. */
export interface IPanelServices {
  model: IPoolsModel;
  current: ICurrentNotebook;
  start: IStartModel;
  variables: IVariablesModel;
  /** What of the panel is folded away. */
  uiState: UiState;
  commands: CommandRegistry;
  clock: Clock;
}
