import { draftOf, readDraft } from '../model/jobDraft';
import type { IJobDraft } from '../model/jobDraft';
import { joinWords, splitWords } from '../model/shellWords';
import type { IJobRequest } from '../model/submitContract';
import {
  jobCommand,
  sayLeftBraces,
  sayPlan,
  saySubmitted
} from '../words/submitWords';
import { makeJob, makePlan, SCHEMA } from './queueSamples';

function read(changes: Partial<IJobDraft>) {
  const draft = { ...draftOf(SCHEMA, {}), ...changes };
  return readDraft(SCHEMA, draft);
}

describe('splitWords', () => {
  it.each([
    ['python train.py  --lr 0.1', ['python', 'train.py', '--lr', '0.1']],
    [`a 'b c' "d \\"e\\" \\n"`, ['a', 'b c', 'd "e" \\n']],
    [`x'y'"z"\\ w`, ['xyz w']],
    ['', []],
    [`""`, ['']],
    ['echo "open', null],
    ['echo \\', null]
  ])('%s', (text, words) => {
    expect(splitWords(text)).toEqual(words);
  });

  it('reads what joinWords has written', () => {
    const words = ['a', 'b c', `it's`, '"', '\\', '$x', '', '{lr}', 'ä'];
    expect(splitWords(joinWords(words))).toEqual(words);
    expect(joinWords(['python', '{lr}', 'a b'])).toBe("python {lr} 'a b'");
  });
});

describe('readDraft', () => {
  it('keeps what the form does not show', () => {
    const request = { command: ['true'], share: true, gpu_memory: '20G' };
    const draft = draftOf(SCHEMA, request);
    expect(readDraft(SCHEMA, draft).request).toEqual(request);
    expect(jobCommand(request, SCHEMA, '')).toBe(
      'jdist submit --share --gpu-memory 20G true'
    );
  });

  it('reads what was typed', () => {
    const { request, errors } = read({
      texts: {
        command: 'python train.py --lr {lr}',
        gpus: ' 2 ',
        time: '1:00:00',
        chdir: 'work',
        env: 'A=1\n\nB=2'
      },
      flags: { hold: true },
      parameters: [
        { name: 'lr', values: '0.1, 0.01' },
        { name: '', values: '' }
      ]
    });
    expect(errors).toEqual({});
    expect(request).toEqual({
      command: ['python', 'train.py', '--lr', '{lr}'],
      gpus: 2,
      time: '1:00:00',
      chdir: 'work',
      env: ['A=1', 'B=2'],
      hold: true,
      param: ['lr=0.1,0.01']
    });
  });

  it('takes a virtual environment from the folder of the job', () => {
    const venvOf = (venv: string, chdir = 'work') =>
      read({ texts: { command: 'train', chdir, venv } }).request.venv;
    expect(venvOf('.venv')).toBe('work/.venv');
    expect(venvOf('./.venv')).toBe('work/.venv');
    expect(venvOf('.venv', '')).toBe('.venv');
    expect(venvOf('/opt/env')).toBe('/opt/env');
  });

  it('says what is wrong before the server is asked', () => {
    const texts = { command: 'echo "', gpus: 'two' };
    const { errors } = read({ texts });
    expect(Object.keys(errors)).toEqual(['command', 'gpus']);
    expect(Object.keys(read({ texts: { gpus: '-1' } }).errors)).toEqual([
      'gpus'
    ]);
  });

  it('sets variables of notebooks, and sweeps over lists of them', () => {
    const { request } = read({
      what: 'notebook',
      texts: { notebook: 'a/b.ipynb', command: 'not this' },
      parameters: [
        { name: 'lr', values: '0.1, 0.01' },
        { name: 'sizes', values: '[1, 2]' },
        { name: 'seed', values: '1' }
      ]
    });
    expect(request).toEqual({
      notebook: 'a/b.ipynb',
      parameter: ['lr={lr}', 'sizes=[1, 2]', 'seed=1'],
      param: ['lr=0.1,0.01']
    });
  });

  it.each<[IJobRequest]>([
    [{ command: ['work/job.sh', '1'], chdir: 'work' }],
    [{ command: ['python', 'a b.py'], gpus: 2, hold: true, env: ['A=1'] }],
    [{ command: ['/abs/job.sh'], chdir: '/abs', gpu_ids: '0,3' }],
    [{ command: ['train'], chdir: 'work', venv: 'work/.venv' }],
    [{ command: ['train'], chdir: 'work', venv: '/opt/env' }],
    [
      {
        ...{ notebook: 'b.ipynb', parameter: ['seed=1', 'lr={lr}'] },
        param: ['lr=1,2']
      }
    ]
  ])('asks for the same again: %j', request => {
    const read = readDraft(SCHEMA, draftOf(SCHEMA, request));
    expect(read).toEqual({ request, errors: {} });
  });
});

describe('the words of a submission', () => {
  it.each<[IJobRequest, string, string]>([
    [
      { command: ['python', 'train.py'], gpus: 2, chdir: 'work' },
      'work',
      'jdist submit --gpus 2 python train.py'
    ],
    [
      { command: ['work/job.sh'], chdir: 'work', hold: true },
      '',
      'jdist submit --chdir work --hold work/job.sh'
    ],
    [
      { notebook: 'work/a b.ipynb', parameter: ['lr=0.1'], chdir: 'work' },
      'work/notes',
      "jdist notebook --chdir .. -P lr=0.1 '../a b.ipynb'"
    ],
    [
      { command: ['x', '{lr}'], param: ['lr=1,2'], chdir: '/abs' },
      '',
      'jdist submit --chdir /abs --param lr=1,2 x {lr}'
    ],
    [
      { command: ['work/a.sh', '{1,2}', "it's"], venv: 'work/env' },
      'work',
      "jdist submit --chdir .. --venv env a.sh '{1,2}' 'it'\\''s'"
    ]
  ])('%j', (request, folder, command) => {
    expect(jobCommand(request, SCHEMA, folder)).toBe(command);
  });

  it('tell when a job would start', () => {
    const say = (changes: object) => sayPlan(makePlan(changes), '0, 1', 1000);
    expect(say({})).toBe('Starts now');
    expect(say({ gpus: ['a', 'b'] })).toBe('Starts now on GPUs 0, 1');
    const waits = { starts_now: false, place: 3 };
    expect(say({ ...waits, expected: 2000 })).toMatch(
      /^#3 in line · by \d\d:\d\d at the latest$/
    );
    expect(say({ ...waits, expected: 2000, certain: false })).toMatch(
      /^#3 in line · about \d\d:\d\d$/
    );
    expect(say(waits)).toBe('#3 in line · nobody knows when it starts');
    const held = { starts_now: false, reason: 'JobHeldUser' };
    expect(say(held)).toBe('Held');
    // Of several, only the first is known.
    expect(say({ count: 12, gpus: ['a', 'b'] })).toBe(
      '12 jobs. The first starts now on GPUs 0, 1.'
    );
    expect(say({ count: 12 })).toBe('12 jobs. The first starts now.');
    expect(say({ count: 12, ...waits })).toBe(
      '12 jobs · the first is #3 in line · nobody knows when it starts'
    );
    expect(say({ count: 12, ...held })).toBe('12 jobs · Held');
  });

  it.each([
    ['python train.py --lr {lr}', /^{lr} is passed as it is: /],
    ['python {a} {b} {a}', /^{a}, {b} are passed as they are: /],
    ["bash -c 'echo ${HOME} {1..3} {}'", /^$/]
  ])('warn of names in braces: %s', (command, warning) => {
    const plan = makePlan({ commands: [command] });
    expect(sayLeftBraces(plan)).toMatch(warning);
  });

  it('tell what was submitted', () => {
    const jobs = [makeJob(), makeJob({ label: '13' })];
    expect(saySubmitted(jobs.slice(1))).toBe(
      'Job 13 train.py is in the queue.'
    );
    expect(saySubmitted(jobs)).toBe('Jobs 12 … 13 are in the queue.');
  });
});
