import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';

import { ApiError } from '../model/restClient';
import type { IJobs } from '../model/queueContract';
import { CommandIDs } from '../model/tokens';
import { submitPlugin } from '../queue/submit/plugin';
import { FakeQueue, makeJob } from './queueSamples';
import { dialog, dialogSays, makeModel, until } from './samples';

describe('a dialog that is closed while it sends a job', () => {
  const told = () =>
    Notification.manager.notifications.map(({ message }) => message);
  let queue: FakeQueue;
  let done: Promise<unknown>;

  const press = (name: string) =>
    [...(dialog()?.querySelectorAll('button') ?? [])]
      .find(({ textContent }) => textContent === name)
      ?.click();

  /** Submit a job, and close the dialog; then the server answers. */
  async function closeBefore(answer: () => Promise<IJobs>): Promise<void> {
    let come: () => void = () => undefined;
    queue.requests.submitJobs.mockImplementationOnce(() =>
      new Promise<void>(resolve => (come = resolve)).then(answer)
    );
    const commands = new CommandRegistry();
    const serviceManager = { contents: { localPath: (path: string) => path } };
    const model = makeModel({ queue });
    void submitPlugin.activate(
      { commands, serviceManager } as unknown as JupyterFrontEnd,
      ...[model, model, null, null]
    );
    done = commands.execute(CommandIDs.submitJob, {
      request: { command: ['true'] }
    });
    await dialogSays('More options');
    await until(() => {
      press('Submit');
      return queue.requests.submitJobs.mock.calls.length > 0;
    });
    press('Cancel');
    expect(dialog()).toBeNull();
    come();
  }

  beforeEach(() => {
    queue = new FakeQueue();
  });

  afterEach(() => Notification.dismiss());

  it('tells that the job is in the queue', async () => {
    const jobs = [makeJob({ state: 'PENDING' })];
    await closeBefore(() => Promise.resolve({ jobs, count: 1 }));
    await done;
    expect(told()).toEqual([expect.stringContaining('12')]);
  });

  it('tells why the server refuses the job', async () => {
    const error = { code: 'x', message: 'No.', hint: 'Look.' };
    await closeBefore(() => Promise.reject(new ApiError(error, 400)));
    await done;
    expect(told()).toEqual(['No. Look.']);
  });
});
