import { Sanitizer } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import React, { act } from 'react';
import { createRoot } from 'react-dom/client';

import { ApiError } from '../model/restClient';
import type { IJobDetails } from '../model/detailsContract';
import { CommandIDs } from '../model/tokens';
import { JobDetails, JobWidget } from '../queue/details/jobDetails';
import { Clock } from '../ui/clock';
import { sayAttempt, sayJob } from '../words/detailsWords';
import { makeInventory } from './gpuSamples';
import { ATTEMPT, FakeQueue, makeDetails, makeLines } from './queueSamples';
import { makeModel, until } from './samples';

describe('the words about a job', () => {
  const say = (...args: Parameters<typeof makeDetails>) =>
    sayJob(makeDetails(...args).job, 160);

  it.each([
    [{ state: 'COMPLETED' } as const, 'Job 12 train.py has completed.'],
    [
      { state: 'FAILED', detail: 'It ended with exit code 3.' } as const,
      'Job 12 train.py failed: It ended with exit code 3.'
    ],
    [
      { state: 'TIMEOUT', detail: 'It was ended.' } as const,
      'Job 12 train.py reached its time limit. It was ended.'
    ],
    [
      { state: 'PENDING', detail: 'It needs 2 GPUs.' } as const,
      'It needs 2 GPUs.'
    ],
    [{ state: 'CONFIGURING', started: null } as const, 'Starting'],
    [{ state: 'RUNNING', started: 100 } as const, 'Running 1 min']
  ])('%j', (job, words) => {
    expect(say({}, job)).toBe(words);
  });

  it('say what an attempt used', () => {
    expect(sayAttempt(ATTEMPT, 160)).toMatch(
      /^FAILED exit code 3 · started .* · 1 min · GPU load 50 %, at most 80 % · memory up to 2.0 GiB$/
    );
    expect(sayAttempt({ ...ATTEMPT, usage: {} }, 160)).not.toMatch(
      /GPU|Infinity/
    );
    const [usage] = Object.values(ATTEMPT.usage);
    const untold = { 'GPU-0': { ...usage, memory_peak: 0 } };
    expect(sayAttempt({ ...ATTEMPT, usage: untold }, 160)).toMatch(
      /GPU load 50 %, at most 80 %$/
    );
  });
});

describe('JobDetails', () => {
  let host: HTMLElement;
  let queue: FakeQueue;
  let clock: Clock;
  let unmount: () => void;
  const executed = jest.fn();
  const onName = jest.fn();

  async function show(): Promise<void> {
    const commands = new CommandRegistry();
    for (const id of [CommandIDs.openJob, CommandIDs.submitJob]) {
      commands.addCommand(id, { execute: args => executed(id, args) });
    }
    const root = createRoot(host);
    unmount = () => act(() => root.unmount());
    act(() => {
      root.render(
        <JobDetails
          {...{ job: '12', commands, onName }}
          model={makeModel({ queue, gpus: makeInventory() })}
          clock={clock}
          sanitizer={new Sanitizer()}
        />
      );
    });
    // What the server answers is drawn when an act ends.
    await act(() => new Promise<void>(resolve => setTimeout(resolve)));
  }

  const press = (name: string) =>
    act(() => {
      [...host.querySelectorAll('button')]
        .find(({ textContent }) => textContent === name)
        ?.click();
    });

  beforeEach(() => {
    globalThis.ResizeObserver ??= class {
      observe() {}
      unobserve() {}
      disconnect() {}
    };
    host = document.body.appendChild(document.createElement('div'));
    queue = new FakeQueue();
    clock = new Clock();
  });

  afterEach(() => {
    clock.isOn = false;
    unmount();
    host.remove();
  });

  it('says why the ranks of a running job wait', async () => {
    const { jobVerdict } = queue.requests;
    queue.requests.jobDetails.mockResolvedValue(
      makeDetails({}, { state: 'RUNNING', started: 100 })
    );
    await show();
    const launch = { verdict: null, world_size: 2, pool: '' };
    const text = 'Rank 0 waits in barrier #1 at `barrier()`. Rank 1 sleeps.';
    jobVerdict.mockResolvedValue({
      launches: [{ ...launch, text, stacks: 'Rank 0 (pid 7):' }]
    });
    press('Why?');
    expect(host.textContent).toMatch('Asking the ranks…');
    await act(() => new Promise<void>(resolve => setTimeout(resolve)));
    expect(jobVerdict).toHaveBeenCalledWith('12');
    expect(host.textContent).toMatch(text.replaceAll('`', ''));
    expect(host.querySelector('details pre')?.textContent).toBe(
      'Rank 0 (pid 7):'
    );
    const message = 'Job 12 has no ranks now.';
    jobVerdict.mockRejectedValue(
      new ApiError({ code: 'no_ranks', message, hint: '' }, 409)
    );
    press('Why?');
    await act(() => new Promise<void>(resolve => setTimeout(resolve)));
    expect(host.textContent).toMatch(message);
    expect(host.textContent).not.toMatch('Rank 1 sleeps');
  });

  it('shows what is known of it', async () => {
    const first = { label: '11', name: 'prepare', dependency: 'afterok:11' };
    const details = makeDetails(
      {
        attempts: [ATTEMPT],
        dependencies: [{ ...first, state: 'COMPLETED', any: true }]
      },
      { state: 'FAILED', detail: 'It ended with exit code 3.' }
    );
    queue.requests.jobDetails.mockResolvedValue(details);
    await show();
    expect(onName).toHaveBeenCalledWith('12 train.py');
    expect(host.textContent).toMatch('failed: It ended with exit code 3.');
    expect(host.textContent).toMatch('python train.py');
    expect(host.textContent).toMatch('2 variables');
    expect(host.textContent).toMatch('Waits for one of11 prepareafterok:11');
    const curves = host.querySelectorAll('.jp-dist-Curve path');
    // The load of the last reading is not known.
    expect([...curves].map(path => path.getAttribute('d'))).toEqual([
      expect.stringMatching(/^M0\.0 \S+L\S+ \S+L333\.3 \S+$|^M0\.0 /),
      'M0.0 25.6h0L66.7 6.4'
    ]);
    press('11 prepare');
    press('Submit one like this…');
    expect(executed.mock.calls).toEqual([
      [CommandIDs.openJob, { job: '11' }],
      [CommandIDs.submitJob, { request: details.request }]
    ]);
    press('Requeue');
    expect(queue.act).toHaveBeenCalledWith('requeue', ['12']);
  });

  it('says what went wrong with its own actions alone', async () => {
    const fail = (message: string) => ({ code: 'x', message, hint: '' });
    const alert = () => host.querySelector('[role=alert]')?.textContent;
    const details = makeDetails({}, { state: 'FAILED' });
    queue.requests.jobDetails.mockResolvedValue(details);
    await show();
    await act(async () => queue.tell({ actionError: fail('Of the panel.') }));
    expect(alert()).toBeUndefined();
    queue.act.mockImplementation(async () =>
      queue.tell({ actionError: fail('Of the tab.') })
    );
    press('Requeue');
    await until(() => alert() === 'Of the tab.Dismiss');
    press('Dismiss');
    expect(queue.dismissError).toHaveBeenCalled();
    queue.tell({ actionError: fail('Of the panel.') });
    await until(() => alert() === undefined);
  });

  it('asks one thing at a time, and nothing while it is hidden', async () => {
    const { jobDetails } = queue.requests;
    const answers: ((details: IJobDetails) => void)[] = [];
    jobDetails.mockImplementation(
      () => new Promise(resolve => answers.push(resolve))
    );
    const answer = () => act(async () => answers.shift()?.(makeDetails()));
    await show();
    await answer();
    await until(() => Boolean(host.textContent?.includes('12 train.py')));
    // It is hidden until now.
    queue.changed.emit();
    expect(jobDetails).toHaveBeenCalledTimes(1);
    clock.isOn = true;
    expect(jobDetails).toHaveBeenCalledTimes(2);
    queue.changed.emit();
    queue.changed.emit();
    expect(jobDetails).toHaveBeenCalledTimes(2);
    await answer();
    expect(jobDetails).toHaveBeenCalledTimes(3);
    await answer();
    expect(jobDetails).toHaveBeenCalledTimes(3);
  });

  it('shows errors that are in a file of their own', async () => {
    const { jobDetails, jobLines } = queue.requests;
    jobLines.mockImplementation(async (_, { error }) =>
      makeLines({ text: error ? 'badly\n' : 'well\n' })
    );
    await show();
    await until(() => jobLines.mock.calls.length > 0);
    expect(host.textContent).not.toMatch('Errors');
    unmount();
    const error = '/work/jdist-12.err';
    jobDetails.mockResolvedValue(makeDetails({ error }));
    await show();
    const where = () =>
      host.querySelector('.jp-dist-LogPane-file')?.textContent;
    await until(() => where() === '6 B · /work/jdist-12.out');
    press('Errors');
    await until(() => where() === `6 B · ${error}`);
    expect(jobLines.mock.calls.at(-1)).toEqual([
      '12',
      { before: -1, error: 1 }
    ]);
    const pressed = host.querySelector('[aria-pressed=true]');
    expect(pressed?.textContent).toBe('Errors');
    press('Output');
    await until(() => where() === '6 B · /work/jdist-12.out');
  });

  it('follows the queue only while its tab is in sight', () => {
    const widget = new JobWidget({
      ...{ job: '12', commands: new CommandRegistry() },
      model: makeModel({ queue }),
      sanitizer: new Sanitizer()
    });
    unmount = () => widget.dispose();
    Widget.attach(widget, host);
    expect(queue.watched).toEqual(['all']);
    widget.hide();
    expect(queue.watched).toEqual([]);
    widget.show();
    expect(queue.watched).toEqual(['all']);
    widget.dispose();
    expect(queue.watched).toEqual([]);
  });

  it('says why it cannot be shown', async () => {
    const error = { code: 'unknown_job', message: 'Gone.', hint: 'Look.' };
    queue.requests.jobDetails.mockRejectedValue(new ApiError(error, 404));
    await show();
    expect(host.querySelector('[role=alert]')?.textContent).toBe('Gone.Look.');
  });
});
