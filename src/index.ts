import { commandsPlugin } from './commands';
import { modelPlugin } from './model/plugin';
import { panelPlugin } from './panel/plugin';

export * from './tokens';

export default [modelPlugin, commandsPlugin, panelPlugin];
