import { cellsPlugin } from './cells/plugin';
import { codePlugin } from './code/plugin';
import { runFilePlugin } from './code/runFile';
import { commandsPlugin } from './commands';
import { launcherPlugin } from './launcher/plugin';
import { modelPlugin } from './model/plugin';
import { outputsPlugin } from './outputs/plugin';
import { panelPlugin } from './panel/plugin';
import { ranksPlugin } from './ranks/plugin';
import { replayPlugin } from './replay';
import { runningPlugin } from './running/plugin';
import { startPlugin } from './start/plugin';
import { statusBarPlugin } from './statusbar/plugin';
import { timelinePlugin } from './timeline/plugin';
import { modePlugin } from './toolbar/modePlugin';
import { toolbarPlugin } from './toolbar/plugin';

export * from './tokens';

export default [
  modelPlugin,
  startPlugin,
  commandsPlugin,
  codePlugin,
  runFilePlugin,
  panelPlugin,
  ranksPlugin,
  outputsPlugin,
  replayPlugin,
  statusBarPlugin,
  runningPlugin,
  launcherPlugin,
  toolbarPlugin,
  modePlugin,
  cellsPlugin,
  timelinePlugin
];
