import { cellsPlugin } from './cells/plugin';
import { codePlugin } from './code/plugin';
import { commandsPlugin } from './commands';
import { launcherPlugin } from './launcher/plugin';
import { modelPlugin } from './model/plugin';
import { panelPlugin } from './panel/plugin';
import { ranksPlugin } from './ranks/plugin';
import { replayPlugin } from './replay';
import { runningPlugin } from './running/plugin';
import { startPlugin } from './start/plugin';
import { statusBarPlugin } from './statusbar/plugin';
import { timelinePlugin } from './timeline/plugin';
import { toolbarPlugin } from './toolbar/plugin';

export * from './tokens';

export default [
  modelPlugin,
  startPlugin,
  commandsPlugin,
  codePlugin,
  panelPlugin,
  ranksPlugin,
  replayPlugin,
  statusBarPlugin,
  runningPlugin,
  launcherPlugin,
  toolbarPlugin,
  cellsPlugin,
  timelinePlugin
];
