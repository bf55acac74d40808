import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';

/** JupyterLab's command that shows the debugger, if it is installed. */
const SHOW_DEBUGGER = 'debugger:show-panel';
const DEBUGGER = 'jp-debugger-sidebar';
/** The button that switches JupyterLab's debugger on: there is no command for it. */
const SWITCH = '.jp-DebuggerBugButton';
/** Milliseconds between two looks whether it is on. */
const EVERY = 200;
const LOOKS = 150;

/** Shows a rank in JupyterLab's debugger: where it is stopped, or else it is stopped now. */
export async function debugRank(
  panel: NotebookPanel,
  rank: number,
  commands: CommandRegistry
): Promise<void> {
  const isOn = async () =>
    Boolean((await ask(panel, 'debugInfo', {}))?.isStarted);
  if (!(await isOn())) {
    // In JupyterLab 4.2 the buttons of a toolbar do not hear a click, but keys.
    panel.toolbar.node
      .querySelector(SWITCH)
      ?.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
      );
    for (let look = 0; look < LOOKS && !(await isOn()); look++) {
      await new Promise(resolve => setTimeout(resolve, EVERY));
    }
  }
  // In Notebook 7.2 the command would hide it again.
  const isInSight = document.getElementById(DEBUGGER)?.offsetParent;
  if (!isInSight && commands.hasCommand(SHOW_DEBUGGER)) {
    void commands.execute(SHOW_DEBUGGER);
  }
  await ask(panel, 'jdistShowRank', { rank });
}

/** The kernels whose debugger lets only the rank go on that is shown. */
const stepsOne = new WeakSet<Kernel.IKernelConnection>();

export function stepsOneRank(panel: NotebookPanel): boolean {
  const kernel = panel.sessionContext.session?.kernel;
  return Boolean(kernel && stepsOne.has(kernel));
}

/** Let only the rank go on that the debugger shows, or all that are stopped. */
export async function stepOneRank(
  panel: NotebookPanel,
  on: boolean
): Promise<void> {
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel) {
    return;
  }
  await ask(panel, 'jdistStepOnlyShownRank', { on });
  if (!on) {
    stepsOne.delete(kernel);
    return;
  }
  stepsOne.add(kernel);
  // A new process knows nothing of it.
  const forget = (_: unknown, status: Kernel.Status) => {
    if (status === 'restarting' || status === 'autorestarting') {
      stepsOne.delete(kernel);
      kernel.statusChanged.disconnect(forget);
    }
  };
  kernel.statusChanged.connect(forget);
}

let number = 0;

async function ask(
  { sessionContext }: NotebookPanel,
  command: string,
  args: Record<string, unknown>
): Promise<Record<string, unknown> | null> {
  const kernel = sessionContext.session?.kernel;
  if (!kernel) {
    return null;
  }
  const reply = await kernel.requestDebug({
    type: 'request',
    seq: --number, // JupyterLab's own begin at 0
    command,
    arguments: args
  }).done;
  return (reply.content.body ?? null) as Record<string, unknown> | null;
}
