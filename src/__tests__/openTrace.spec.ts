import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { RenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime';
import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';

import { CommandIDs } from '../model/tokens';
import { askPerfetto, PERFETTO } from '../profile/openTrace';
import { profilePlugin } from '../profile/plugin';
import { TRACE } from '../profile/traceView';
import { dialog, dialogSays, until } from './samples';

const NAME = 'profile-cell-4.json.gz';

/** A window, and what it was sent. */
function makeViewer() {
  const sent: unknown[][] = [];
  const viewer = {
    closed: false,
    close: () => (viewer.closed = true),
    postMessage: (...message: unknown[]) => sent.push(message)
  };
  const say = (data: string, changes: MessageEventInit = {}) =>
    window.dispatchEvent(
      new MessageEvent('message', {
        source: viewer as unknown as Window,
        origin: PERFETTO,
        data,
        ...changes
      })
    );
  return { viewer: viewer as unknown as Window, sent, say };
}

/** What a promise has become so far. */
function watch<T>(promise: Promise<T>): { value: T | null } {
  const watched: { value: T | null } = { value: null };
  void promise.then(value => (watched.value = value));
  return watched;
}

describe('askPerfetto', () => {
  it('asks until it is answered, and then no more', async () => {
    const { viewer, sent, say } = makeViewer();
    const answer = askPerfetto(viewer);
    await until(() => sent.length > 1);
    expect(sent[1]).toEqual(['PING', PERFETTO]);
    say('PONG');
    expect(await answer).toBe('ready');
    const count = sent.length;
    await new Promise(resolve => setTimeout(resolve, 250));
    expect(sent).toHaveLength(count);
  });

  it('takes no answer of another page', async () => {
    const { viewer, sent, say } = makeViewer();
    const watched = watch(askPerfetto(viewer));
    say('PONG', { origin: 'https://example.org' });
    say('PONG', { source: window });
    say('ping');
    await until(() => sent.length > 1);
    expect(watched.value).toBeNull();
    say('PONG');
    await until(() => watched.value === 'ready');
  });

  it('gives up', async () => {
    expect(await askPerfetto(makeViewer().viewer, 300)).toBe('silent');
    const { viewer } = makeViewer();
    viewer.close();
    expect(await askPerfetto(viewer)).toBe('closed');
  });
});

/** The plugin in a page that opens `viewer`, and where these files are selected. */
function make({
  viewer = null as Window | null,
  selected = [NAME],
  folder = 'work/',
  status = 200
}) {
  const opened = jest.spyOn(window, 'open').mockReturnValue(viewer);
  const commands = new CommandRegistry();
  const rendermime = new RenderMimeRegistry();
  const asked: string[] = [];
  const contents = {
    getDownloadUrl: (path: string) => Promise.resolve(`http://lab/${path}`)
  };
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: 'http://lab/',
    fetch: input => {
      asked.push((input as Request).url);
      return Promise.resolve({
        ok: status === 200,
        status,
        statusText: 'Not Found',
        arrayBuffer: () => Promise.resolve(new ArrayBuffer(5))
      } as Response);
    }
  });
  void profilePlugin.activate(
    {
      commands,
      serviceManager: { contents, serverSettings }
    } as unknown as JupyterFrontEnd,
    rendermime,
    nullTranslator,
    {
      tracker: {
        currentWidget: {
          selectedItems: () =>
            selected.map(name => ({ name, path: folder + name }))
        }
      }
    }
  );
  return { commands, rendermime, asked, opened };
}

describe('Open in Perfetto', () => {
  const downloads: string[] = [];

  beforeEach(() => {
    downloads.length = 0;
    URL.createObjectURL = () => 'blob:trace';
    URL.revokeObjectURL = () => undefined;
    jest
      .spyOn(HTMLAnchorElement.prototype, 'click')
      .mockImplementation(function (this: HTMLAnchorElement) {
        downloads.push(this.download);
      });
  });

  afterEach(() => {
    jest.restoreAllMocks();
    Notification.dismiss();
  });

  const said = () => Notification.manager.notifications.at(-1)?.message ?? '';

  it('hands the trace to the page that answers', async () => {
    const { viewer, sent, say } = makeViewer();
    const { commands, asked, opened } = make({ viewer });
    const done = commands.execute(CommandIDs.openTrace);
    expect(opened).toHaveBeenCalledWith(PERFETTO);
    await until(() => sent.length > 0);
    say('PONG');
    await done;
    expect(asked[0]).toContain(`http://lab/work/${NAME}`);
    const [{ perfetto }, origin] = sent.at(-1) as [
      { perfetto: { buffer: ArrayBuffer; title: string } },
      string
    ];
    expect(origin).toBe(PERFETTO);
    expect(perfetto.title).toBe(NAME);
    expect(perfetto.buffer.byteLength).toBe(5);
    expect(downloads).toEqual([]);
  });

  it('downloads the trace where windows are blocked', async () => {
    const { commands } = make({});
    await commands.execute(CommandIDs.openTrace, { path: NAME });
    expect(downloads).toEqual([NAME]);
    expect(said()).toMatch(/^The browser blocked .* downloaded/);
    expect(said().length).toBeLessThanOrEqual(140);
  });

  it('downloads nothing for a window that was closed', async () => {
    const { viewer } = makeViewer();
    viewer.close();
    const { commands } = make({ viewer });
    await commands.execute(CommandIDs.openTrace);
    expect(downloads).toEqual([]);
  });

  it('says what is wrong with the file', async () => {
    const { viewer } = makeViewer();
    const { commands } = make({ viewer, status: 404 });
    const done = commands.execute(CommandIDs.openTrace);
    await dialogSays('cannot be opened');
    expect(viewer.closed).toBe(true);
    dialog()?.querySelector('button')?.click();
    await done;
  });

  it.each([
    [[NAME], true],
    [['train.json.gz'], false],
    [['profile-cell-4-2.json.gz'], true],
    [[NAME, 'profile-cell-5.json.gz'], false],
    [[], false]
  ])('is there for one trace: %j', (selected, isVisible) => {
    const { commands } = make({ selected });
    expect(commands.isVisible(CommandIDs.openTrace)).toBe(isVisible);
  });

  it('is there at the root of another drive', () => {
    const { commands } = make({ folder: 'RTC:' });
    expect(commands.isVisible(CommandIDs.openTrace)).toBe(true);
  });

  it.each([
    [NAME, true],
    ['../secret.txt', false],
    ['../profile-cell-4.json.gz', false]
  ])('below a cell: %s', async (file, isShown) => {
    const { rendermime, commands } = make({});
    const execute = jest.spyOn(commands, 'execute').mockResolvedValue(null);
    const resolver = {
      resolveUrl: (url: string) => Promise.resolve(`my%20work/${url}`),
      getDownloadUrl: (path: string) => Promise.resolve(`http://lab/${path}`)
    };
    const view = rendermime
      .clone({ resolver: resolver as IRenderMime.IResolver })
      .createRenderer(TRACE);
    Widget.attach(view, document.body);
    await view.renderModel({
      data: { [TRACE]: { file } }
    } as unknown as IRenderMime.IMimeModel);
    if (isShown) {
      await until(() => view.node.querySelector('a') !== null);
      const link = view.node.querySelector('a')!;
      expect(link.href).toBe(`http://lab/my%20work/${NAME}`);
      expect(view.node.textContent).toBe(
        `Trace of all ranks:${NAME}Open in Perfetto`
      );
      view.node.querySelector('button')!.click();
      expect(execute).toHaveBeenCalledWith(CommandIDs.openTrace, {
        path: `my work/${NAME}`
      });
    } else {
      expect(view.node.textContent).toBe('');
    }
    view.dispose();
  });
});
