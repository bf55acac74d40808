import { commandsPlugin } from './commands';
import { launcherPlugin } from './launcher/plugin';
import { modelPlugin } from './model/plugin';
import { outputsPlugin } from './outputs/plugin';
import { panelPlugin } from './panel/plugin';
import { replayPlugin } from './replay';
import { runningPlugin } from './running/plugin';
import { statusBarPlugin } from './statusbar/plugin';
import { timelinePlugin } from './timeline/plugin';
import { cellsPlugin } from './toolbar/cellsPlugin';
import { toolbarPlugin } from './toolbar/plugin';

export * from './tokens';

export default [
  modelPlugin,
  commandsPlugin,
  panelPlugin,
  outputsPlugin,
  replayPlugin,
  statusBarPlugin,
  runningPlugin,
  launcherPlugin,
  toolbarPlugin,
  cellsPlugin,
  timelinePlugin
];
