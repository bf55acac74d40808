import {
  currentNotebookPlugin,
  modelPlugin,
  startPlugin
} from './model/plugin';
import { cellsPlugin } from './notebook/cells/plugin';
import { codePlugin } from './notebook/code/plugin';
import { runFilePlugin } from './notebook/code/runFile';
import { launcherPlugin } from './notebook/launcher/plugin';
import { toolbarPlugin } from './notebook/toolbar/plugin';
import { outputsPlugin } from './outputs/plugin';
import { replayPlugin } from './outputs/replay';
import { commandsPlugin } from './panel/commands';
import { panelPlugin } from './panel/plugin';
import { queuePlugin } from './panel/queue/plugin';
import { ranksPlugin } from './panel/ranks/plugin';
import { runningPlugin } from './panel/running';
import { statusBarPlugin } from './panel/statusBar';
import { profilePlugin } from './profile/plugin';
import { detailsPlugin } from './queue/details/plugin';
import { submitPlugin } from './queue/submit/plugin';
import { runAsJobPlugin } from './queue/submit/runAsJob';
import { timelinePlugin } from './timeline/plugin';

export * from './model/tokens';

export default [
  modelPlugin,
  currentNotebookPlugin,
  startPlugin,
  commandsPlugin,
  codePlugin,
  runFilePlugin,
  panelPlugin,
  ranksPlugin,
  queuePlugin,
  submitPlugin,
  runAsJobPlugin,
  detailsPlugin,
  outputsPlugin,
  replayPlugin,
  statusBarPlugin,
  runningPlugin,
  launcherPlugin,
  toolbarPlugin,
  cellsPlugin,
  timelinePlugin,
  profilePlugin
];
