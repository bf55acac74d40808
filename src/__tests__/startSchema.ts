import type { IStartField, IStartSchema } from '../model/contract';

function makeField(
  widget: IStartField['x-widget'],
  title: string,
  changes: Partial<IStartField> = {}
): IStartField {
  const description = `About ${title}.`;
  return { type: '', title, description, 'x-widget': widget, ...changes };
}

const advanced = { 'x-advanced': true };
/** What a pool can be asked for. */
export const SCHEMA: IStartSchema = {
  type: 'object',
  properties: {
    num_ranks: makeField('ranks', 'Ranks', {
      type: 'integer',
      minimum: 1,
      maximum: 128
    }),
    gpu_ids: makeField('gpus', 'GPUs'),
    placement: makeField('choice', 'Placement', {
      default: 'cycle',
      oneOf: [
        { const: 'cycle', title: 'In turn' },
        { const: 'free-memory', title: 'Emptiest first' }
      ]
    }),
    oversubscribe: makeField('flag', 'Share', { default: false }),
    engine: makeField('choice', 'Run on', {
      default: 'local',
      oneOf: [
        { const: 'local', title: 'This node only' },
        { const: 'slurm', title: 'Slurm job 4711' }
      ],
      ...advanced
    }),
    nodes: makeField('number', 'Nodes', {
      type: 'integer',
      minimum: 1,
      maximum: 2,
      'x-notes': ['n1 (this node): 4 GPUs', 'n2: 2 GPUs'],
      ...advanced
    }),
    cpu_ranks: makeField('number', 'Ranks on the CPU', {
      type: 'integer',
      minimum: 1,
      maximum: 8,
      ...advanced
    }),
    min_free_memory: makeField('bytes', 'Free memory', {
      minimum: 1,
      ...advanced
    }),
    timeout: makeField('number', 'Start timeout', {
      default: 120,
      'x-unit': 's',
      ...advanced
    }),
    idle_limit: makeField('number', 'Idle limit', {
      'x-unit': 's',
      ...advanced
    }),
    env: makeField('env', 'Environment', advanced),
    later: makeField('hologram' as 'env', 'Later')
  }
};
