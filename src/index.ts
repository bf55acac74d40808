import { commandsPlugin } from './commands';
import { modelPlugin } from './model/plugin';
import { panelPlugin } from './panel/plugin';
import { replayPlugin } from './replay';

export * from './tokens';

export default [modelPlugin, commandsPlugin, panelPlugin, replayPlugin];
