import { cellsPlugin } from './notebook/cells/plugin';
import { codePlugin } from './notebook/code/plugin';
import { runFilePlugin } from './notebook/code/runFile';
import { commandsPlugin } from './panel/commands';
import { launcherPlugin } from './notebook/launcher/plugin';
import { modelPlugin } from './model/plugin';
import { outputsPlugin } from './outputs/plugin';
import { panelPlugin } from './panel/plugin';
import { ranksPlugin } from './panel/ranks/plugin';
import { replayPlugin } from './outputs/replay';
import { runningPlugin } from './panel/running/plugin';
import { startPlugin } from './model/startPlugin';
import { statusBarPlugin } from './panel/statusbar/plugin';
import { timelinePlugin } from './timeline/plugin';
import { modePlugin } from './notebook/toolbar/modePlugin';
import { toolbarPlugin } from './notebook/toolbar/plugin';

export * from './model/tokens';

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
