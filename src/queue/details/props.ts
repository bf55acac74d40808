import type { IRenderMime } from '@jupyterlab/rendermime';
import type { CommandRegistry } from '@lumino/commands';

import type { IJobDetails } from '../../model/detailsContract';
import type { IPoolsModel } from '../../model/tokens';
import type { Clock } from '../../ui/clock';

export interface IJobDetailsProps {
  job: string;
  model: IPoolsModel;
  commands: CommandRegistry;
  sanitizer: IRenderMime.ISanitizer;
  clock: Clock;
  onName: (name: string) => void;
}

export type DetailsProps = IJobDetailsProps & { details: IJobDetails };
