import { Sanitizer } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import React, { act } from 'react';

import type { IInLine, IOffer } from '../model/contract';
import { draftOf } from '../model/jobDraft';
import { ApiError } from '../model/restClient';
import type { IJobRequest, ISubmitSchema } from '../model/submitContract';
import { loadTranslations } from '../model/trans';
import type { IPanelServices } from '../panel/services';
import {
  VariablesSection,
  VariablesSummary
} from '../panel/variables/variablesSection';
import { JobDetails } from '../queue/details/jobDetails';
import { NotebookHead } from '../queue/details/liveNotebook';
import { askForJobs } from '../queue/submit/submitDialog';
import { SubmitForm } from '../queue/submit/submitForm';
import { sayJob } from '../words/detailsWords';
import { sayLine, sayOffer } from '../words/lineWords';
import { sayArray } from '../words/queueWords';
import { sayPlan, saySubmitted } from '../words/submitWords';
import { makeInventory } from './gpuSamples';
import { expectWhole, pseudo, textsIn } from './pseudo';
import {
  ATTEMPT,
  FakeQueue,
  makeDetails,
  makeJob,
  makeTasks,
  makePlan,
  SCHEMA
} from './queueSamples';
import { dialog, makeModel, makePool, until } from './samples';
import { host, show } from './screen';
import {
  makeForm,
  makeVariable,
  makeVariables,
  MODEL,
  OWN
} from './variableSamples';

beforeEach(() => {
  jest.spyOn(nullTranslator, 'load').mockReturnValue(pseudo);
  loadTranslations(nullTranslator);
  globalThis.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** Draws until a text is on the screen. */
async function drawn(text: string): Promise<void> {
  while (!textsIn(host).some(said => said.includes(text))) {
    await act(() => new Promise(resolve => setTimeout(resolve, 10)));
  }
}

describe('a job has whole messages', () => {
  const first = { label: '11', name: 'prepare', dependency: 'afterok:11' };

  it.each([
    ['that waits', makeDetails({}, { state: 'PENDING', reason: 'Resources' })],
    ['that runs', makeDetails({}, { state: 'RUNNING', started: 100 })],
    [
      'that failed',
      makeDetails(
        {
          attempts: [ATTEMPT, { ...ATTEMPT, attempt: 2, exit_signal: 9 }],
          dependencies: [{ ...first, state: 'COMPLETED', any: true }],
          error: '/work/jdist-12.err',
          notebook: '/work/train.ipynb'
        },
        { state: 'FAILED', cpus: 2, memory: 2 ** 30, priority: 5, limit: 60 }
      )
    ]
  ])('in its tab: %s', async (_, details) => {
    const queue = new FakeQueue();
    queue.requests.jobDetails.mockResolvedValue(details);
    const model = makeModel({ queue, gpus: makeInventory() });
    const Part = ({ clock, commands }: IPanelServices) => (
      <JobDetails
        {...{ job: '12', model, clock, commands }}
        onName={() => {}}
        sanitizer={new Sanitizer()}
      />
    );
    show({}, Part);
    await drawn('train.py');
    expectWhole(textsIn(host));
  });

  it('however it ends, and above its notebook', async () => {
    const states = ['COMPLETED', 'FAILED', 'TIMEOUT', 'CANCELLED'] as const;
    const ends = states.map(state => makeDetails({}, { state }).job);
    expectWhole(ends.map(job => sayJob(job, 160)));
    const head = new NotebookHead('12', () => {});
    Widget.attach(head, document.body);
    for (const state of ['running', 'ended'] as const) {
      head.tell(state);
      const words = state === 'ended' ? 'has ended' : 'is writing';
      await until(() => Boolean(head.node.textContent?.includes(words)));
      expectWhole(textsIn(head.node));
    }
    head.dispose();
  });
});

describe('a submission has whole messages', () => {
  const texts = { command: 'echo "', gpus: 'two' };
  const param = ['lr=0.1,0.2'];
  const requests = new FakeQueue().requests;

  it.each<[string, IJobRequest, object]>([
    ['a command', { command: ['python', '{lr}'], param, gpus: 2 }, {}],
    ['a notebook', { notebook: 'a.ipynb', parameter: ['lr=1'] }, {}],
    ['mistakes', { command: ['x'], hold: true }, { texts }]
  ])('in its form: %s', async (_, request, changes) => {
    const draft = { ...draftOf(SCHEMA, request), ...changes };
    const { gpus } = makeInventory();
    const refusal = { code: 'x', message: 'No.', hint: 'Look.' };
    show({}, () => (
      <SubmitForm
        {...{ draft, gpus, requests, refusal, schema: SCHEMA }}
        onChange={() => {}}
      />
    ));
    expectWhole(textsIn(host));
    [...host.querySelectorAll<HTMLElement>('[aria-expanded=false]')].forEach(
      node => act(() => node.click())
    );
    expectWhole(textsIn(host));
  });

  const ask = (schema: Promise<ISubmitSchema>) =>
    askForJobs({
      ...{ requests, schema, gpus: makeInventory().gpus },
      request: { command: ['true'] },
      insert: { label: pseudo.__('Insert'), execute: () => {} }
    });
  const said = (text: string) =>
    until(() => (dialog()?.textContent ?? '').includes(text));

  it('in its dialog, before and after its form has come', async () => {
    let come: (schema: ISubmitSchema) => void = () => {};
    const asked = ask(new Promise(resolve => (come = resolve)));
    await said('⟦Loading the form…⟧');
    expectWhole(textsIn(dialog()!));
    come(SCHEMA);
    await said('⟦More options⟧');
    expectWhole(textsIn(dialog()!));
    dialog()!.querySelector<HTMLElement>('.jp-mod-reject')!.click();
    expect(await asked).toBeNull();
  });

  it('in its dialog, if the form does not come', async () => {
    const error = new ApiError(
      { code: 'x', message: '⟦No.⟧', hint: '⟦Look.⟧' },
      500
    );
    const asked = ask(Promise.reject(error));
    await said('⟦No.⟧⟦Look.⟧');
    expectWhole(textsIn(dialog()!));
    dialog()!.querySelector<HTMLElement>('.jp-mod-reject')!.click();
    expect(await asked).toBeNull();
  });

  it('on the tasks of an array', () => {
    const tasks = ['COMPLETED', 'RUNNING', 'FAILED', 'TIMEOUT'] as const;
    const jobs = tasks.map(state => makeJob({ state, detail: 'No.' }));
    expectWhole(jobs.map((_, i) => sayArray('40', makeTasks(jobs.slice(i)))));
  });

  it('on when it starts, and afterwards', () => {
    const waits = { starts_now: false, place: 3 };
    const plans = [
      {},
      { gpus: ['a', 'b'] },
      { count: 3 },
      { count: 3, gpus: ['a', 'b'] },
      { ...waits, count: 3 },
      { ...waits, expected: 2000 },
      { ...waits, expected: 2000, certain: false },
      waits,
      { starts_now: false, reason: 'JobHeldUser' }
    ];
    const jobs = [makeJob(), makeJob({ label: '13' })];
    expectWhole([
      ...plans.map(plan => sayPlan(makePlan(plan), '0, 1', 1000)),
      saySubmitted(jobs),
      saySubmitted(jobs.slice(1))
    ]);
  });
});

describe('who waits for GPUs has whole messages', () => {
  it('on what can be done instead', () => {
    const line = { place: 3, expected: 2000, certain: true };
    const lines: IInLine[] = [
      line,
      { ...line, certain: false },
      { ...line, expected: null }
    ];
    const offers: IOffer[] = [
      { kind: 'wait' },
      ...lines.map(line => ({ kind: 'wait' as const, line })),
      { kind: 'free', gpu_ids: [1] },
      { kind: 'free', gpu_ids: [1, 2, 3, 4, 5] },
      { kind: 'share' },
      { kind: 'job', gpus: 2 }
    ];
    expectWhole([
      ...offers.map(offer => sayOffer(offer, 1000)),
      ...lines.map(line => sayLine(line, 1000))
    ]);
    const choice = { num_ranks: 4, gpu_ids: [0, 1] };
    const error = { code: 'gpus_taken', message: 'Taken.', hint: 'Wait.' };
    // One of each kind, as the server offers them.
    const kinds = new Map(offers.map(offer => [offer.kind, offer]));
    show({ error: { ...error, offers: [...kinds.values()], choice } });
    expect(textsIn(host)).toContain('⟦Share the GPUs⟧');
    expectWhole(textsIn(host));
  });

  it('on its place', () => {
    const line = { place: 2, expected: null, certain: false };
    const phase = 'waiting for GPUs';
    const progress = { phase, ready: 0, reason: 'Taken.', line };
    show({ pool: makePool({ state: 'PENDING', progress, ranks: [] }) });
    expectWhole(textsIn(host));
  });
});

describe('variables have whole messages', () => {
  const Part = (services: IPanelServices) => {
    services.variables.watch();
    return (
      <>
        <h3>
          <VariablesSummary {...services} />
        </h3>
        <VariablesSection {...services} />
      </>
    );
  };
  const shard = (rank: number) =>
    makeForm({
      ranks: [rank],
      shard: `[${rank}:1]`,
      devices: [`cuda:${rank}`]
    });
  const list = [
    MODEL,
    makeVariable('same'),
    OWN,
    makeVariable('parts', { content: 'sharded', forms: [0, 1].map(shard) }),
    makeVariable('many', {
      content: 'differs',
      forms: [0, 1, 2, 3, 4, 5].map(rank =>
        makeForm({ ranks: [rank], shape: [rank] })
      )
    })
  ];

  it.each([
    ['all kinds', makeVariables(list)],
    ['none', makeVariables([])],
    [
      'ranks that do not say',
      makeVariables(list, { busy: [1], silent: [2], dead: [3] })
    ]
  ])('%s', async (_, answer) => {
    const variables = () => Promise.resolve(answer);
    show({ pool: makePool(), variables }, Part);
    expectWhole(textsIn(host));
    while (host.textContent?.includes('Reading')) {
      await act(() => new Promise(resolve => setTimeout(resolve, 10)));
    }
    expectWhole(textsIn(host));
  });
});
