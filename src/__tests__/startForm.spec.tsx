import { act } from 'react';

import { ApiError } from '../model/restClient';
import type { StreamMessage } from '../model/contract';
import { withoutValues } from '../model/startDraft';
import type { IProcess } from '../model/gpuContract';
import { Telemetry } from '../model/telemetry';
import { CommandIDs } from '../model/tokens';
import {
  FakeStream,
  makeGpu,
  makeGpusMessage,
  makeInventory,
  makeProcess,
  makeTelemetry
} from './gpuSamples';
import { makePool } from './samples';
import type { Changes } from './samples';
import { button, executed, host, press, show, start } from './screen';
import { SCHEMA } from './startSchema';

const GB = 2 ** 30;

const bob = { user: 'bob', notebook: 'a/sum.ipynb', pool: 'p9', since: 50 };
const message = makeGpusMessage({
  inventory: makeInventory({ gpus: [0, 1, 2, 3].map(i => makeGpu(i)) }),
  leases: { 'GPU-3': { ...bob, shared: false } }
});

/** Show the form when the server has answered; answer how it is told more. */
async function showForm(
  changes: Changes = {}
): Promise<(said: StreamMessage) => void> {
  const stream = new FakeStream();
  const telemetry = new Telemetry(stream);
  stream.received.emit(message);
  stream.received.emit({
    type: 'sample',
    time: 1,
    values: {
      utilization: [7, 0, 0, 0],
      memory_used: [20 * GB, 0, 0, 0]
    }
  });
  await act(async () =>
    show({
      startSchema: () => Promise.resolve(SCHEMA),
      gpus: message.inventory,
      telemetry,
      defaultRanks: 3,
      ...changes
    })
  );
  return said => act(() => stream.received.emit(said));
}

function input(label: string): HTMLInputElement {
  const found = [...host.querySelectorAll('input')].find(
    node =>
      (node.getAttribute('aria-label') ?? node.labels?.[0].textContent) ===
      label
  );
  if (!found) {
    throw new Error(`No input "${label}" in: ${host.textContent}`);
  }
  return found;
}

function write(label: string, text: string): void {
  const node = input(label);
  const { set } =
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value') ?? {};
  act(() => {
    set?.call(node, text);
    node.dispatchEvent(new Event('input', { bubbles: true }));
  });
}

function tick(label: string): void {
  act(() => input(label).click());
}

function choices(): unknown[] {
  return executed.map(command => (command as { choice: unknown }).choice);
}

/** What is said below fields. */
function errors(): (string | null)[] {
  return [...host.querySelectorAll('.jp-dist-Field-error')]
    .map(node => node.textContent)
    .filter(Boolean);
}

describe('StartForm', () => {
  it('has a widget for each field that it knows', async () => {
    await showForm();
    const fields = [...host.querySelectorAll('form label, form legend')];
    expect(fields.map(({ textContent }) => textContent)).toEqual([
      'Ranks',
      'GPUsAny free GPU',
      'GPU 07 %60.0 GiB free',
      'GPU 10 %80.0 GiB free',
      'GPU 20 %80.0 GiB free',
      'GPU 30 %bob, sum.ipynb',
      'Placement',
      'Share'
    ]);
    press('Start');
    expect(executed).toEqual([
      { id: CommandIDs.startPool, choice: { num_ranks: 3 } }
    ]);
  });

  it('offers a rank per GPU that is picked, unless the user says how many', async () => {
    await showForm();
    tick('GPU 2');
    tick('GPU 0');
    expect(input('Ranks').value).toBe('2');
    expect(host.textContent).not.toMatch('share');
    press('One rank more');
    expect(host.textContent).toMatch('they share 2 GPUs and use gloo');
    tick('GPU 1');
    tick('GPU 2');
    tick('GPU 0');
    expect(input('Ranks').value).toBe('3');
    press('Start');
    press('Clear');
    expect(document.activeElement).toBe(input('GPU 0'));
    press('Start');
    expect(choices()).toEqual([
      { num_ranks: 3, gpu_ids: [1] },
      { num_ranks: 3 }
    ]);
  });

  it('counts ranks on the CPU beside those on GPUs', async () => {
    await showForm();
    press('More options');
    write('Ranks on the CPU', '2');
    expect(input('Ranks').value).toBe('5');
    tick('GPU 2');
    expect(input('Ranks').value).toBe('3');
    expect(host.textContent).not.toMatch('share');
    press('Start');
    expect(choices()).toEqual([{ num_ranks: 3, gpu_ids: [2], cpu_ranks: 2 }]);
  });

  it('does not offer what a process of somebody else uses, and says which', async () => {
    const tell = await showForm();
    const chip = () => input('GPU 2').parentElement?.textContent;
    const use = (changes: Partial<IProcess>, pids = [812], unseen = false) =>
      tell({
        type: 'processes',
        gpus: { 'GPU-2': [makeProcess(changes)] },
        in_use: { 'GPU-2': { words: 'used by python', pids, unseen } }
      });
    use({}, []);
    expect(input('GPU 2').disabled).toBe(false);
    use({ who: { kind: 'kernel', kernel_id: 'k1', name: 'own.ipynb' } });
    expect(input('GPU 2').disabled).toBe(false);
    use({});
    expect(input('GPU 2').disabled).toBe(true);
    expect(chip()).toBe('GPU 20 %python, bob');
    expect(input('GPU 2').parentElement?.title).toMatch('python, pid 812, bob');
    use({}, [], true);
    expect(input('GPU 2').disabled).toBe(true);
    expect(chip()).toBe('GPU 20 %in use');
    expect(input('GPU 2').parentElement?.title).toMatch('used by python');
  });

  it('does not offer what somebody has leased, and says who', async () => {
    await showForm();
    expect(input('GPU 3').disabled).toBe(true);
    expect(input('GPU 3').parentElement?.title).toMatch(
      'leased to bob, sum.ipynb\nSince '
    );
  });

  it('does not offer what is drained, and offers what is only reserved later', async () => {
    const words = 'drained by root: fan';
    const closed = { 'GPU-2': { words, now: true } };
    await showForm({ telemetry: makeTelemetry({ ...message, closed }) });
    expect(input('GPU 2').disabled).toBe(true);
    expect(input('GPU 2').parentElement?.textContent).toMatch('closed');
    expect(input('GPU 2').parentElement?.title).toMatch(words);
    closed['GPU-2'].now = false;
    await showForm({ telemetry: makeTelemetry({ ...message, closed }) });
    expect(input('GPU 2').disabled).toBe(false);
    expect(input('GPU 2').parentElement?.title).toMatch(words);
  });

  it('offers what is shared to who shares', async () => {
    const lease = { ...bob, shared: true };
    const telemetry = makeTelemetry({ ...message, leases: { 'GPU-3': lease } });
    await showForm({ telemetry });
    expect(input('GPU 3').disabled).toBe(true);
    tick('Share');
    expect(input('GPU 3').disabled).toBe(false);
  });

  it('sends only what was chosen', async () => {
    await showForm();
    press('More options');
    write('Free memory', '20');
    write('Start timeout', '60');
    press('Add variable');
    write('Name of variable 1', 'MODE');
    write('Value of variable 1', 'fast run');
    press('Add variable');
    tick('Share');
    press('Start');
    press('Remove MODE');
    expect(document.activeElement).toBe(button('Add variable'));
    write('Free memory', '');
    tick('Share');
    press('Start');
    expect(choices()).toEqual([
      {
        num_ranks: 3,
        oversubscribe: true,
        min_free_memory: 20 * GB,
        timeout: 60,
        env: { MODE: 'fast run' }
      },
      { num_ranks: 3, timeout: 60 }
    ]);
  });

  it('says beside a field what is wrong, and does not start', async () => {
    await showForm();
    press('More options');
    write('Ranks', '0');
    press('Add variable');
    write('Value of variable 1', 'x');
    expect(errors()).toEqual([
      'Enter a number from 1 to 128.',
      'A variable needs a name.'
    ]);
    expect(input('Ranks').getAttribute('aria-invalid')).toBe('true');
    expect(button('Start').disabled).toBe(true);
    write('Name of variable 1', 'A B');
    expect(errors()[1]).toMatch('“A B” is not a valid variable name');
    write('Name of variable 1', 'A');
    write('Ranks', '2');
    expect(errors()).toEqual([]);
    expect(button('Start').disabled).toBe(false);
  });

  it('shows the server’s refusal at its field, even below More options', async () => {
    const error = {
      code: 'x',
      message: 'Too long.',
      hint: '',
      field: 'timeout'
    };
    const dismissError = jest.fn();
    await showForm({ error, dismissError });
    expect(errors()).toEqual(['Too long.']);
    expect(host.querySelector('[role=alert]')).toBeNull();
    write('Start timeout', '10');
    expect(dismissError).toHaveBeenCalled();
  });

  it('shows a refusal of a field that it does not have below itself', async () => {
    const error = { code: 'x', message: 'No.', hint: '', field: 'map' };
    await showForm({ error });
    expect(host.querySelector('[role=alert]')?.textContent).toMatch('No.');
  });

  it('leaves the number of ranks to the server while nothing is known of the GPUs', async () => {
    await showForm({ defaultRanks: null });
    expect(input('Ranks').value).toBe('');
    expect(input('Ranks').placeholder).toBe('auto');
    expect(button('One rank fewer').disabled).toBe(true);
    press('Start');
    press('One rank more');
    expect(input('Ranks').value).toBe('1');
    press('Start');
    write('Ranks', '');
    press('Start');
    expect(choices()).toEqual([{}, { num_ranks: 1 }, {}]);
  });

  it('offers ranks again after a start was cancelled before the server had chosen their number', async () => {
    const pool = makePool({ state: 'CANCELLED', ended: 2, world_size: 0 });
    await showForm({ pool });
    expect(errors()).toEqual([]);
    expect(input('Ranks').value).toBe('3');
    press('Start');
    expect(choices()).toEqual([{ num_ranks: 3 }]);
  });

  it('asks again for the value of a variable, which is not kept', async () => {
    await showForm();
    press('More options');
    press('Add variable');
    write('Name of variable 1', 'TOKEN');
    write('Value of variable 1', 'secret');
    const kept = withoutValues(start.draft('train.ipynb'));
    expect(JSON.stringify(kept)).not.toMatch('secret');
    act(() => start.change('train.ipynb', 'env', kept.env));
    expect(errors()).toEqual([
      'Enter the value of “TOKEN” again: values are not saved.'
    ]);
    expect(button('Start').disabled).toBe(true);
    write('Value of variable 1', 'again');
    press('Start');
    expect(choices()).toEqual([{ num_ranks: 3, env: { TOKEN: 'again' } }]);
  });

  it('does not count or keep a variable without a name', async () => {
    await showForm();
    press('More options');
    press('Add variable');
    expect(button('More options')).toBeTruthy();
    expect(withoutValues(start.draft('train.ipynb'))).toEqual({});
    write('Name of variable 1', 'TOKEN');
    expect(button('More options (1 chosen)')).toBeTruthy();
  });

  it('says the unit of a number, and that there is no limit', async () => {
    await showForm();
    press('More options');
    const { placeholder, nextSibling } = input('Idle limit');
    expect([placeholder, nextSibling?.textContent]).toEqual(['none', 's']);
    expect(input('Nodes').placeholder).toBe('any');
  });

  it('inserts the code that starts the same', async () => {
    await showForm();
    tick('GPU 1');
    press('Insert Code');
    expect(executed).toEqual([
      {
        id: CommandIDs.insertCode,
        source: '%load_ext jupyter_dist_server\n%dist_init -n 1 --gpu-ids 1'
      }
    ]);
  });

  it('asks an older server for ranks alone', async () => {
    const missing = new ApiError({ code: 'x', message: 'No.', hint: '' }, 404);
    await showForm({ startSchema: () => Promise.reject(missing) });
    expect(host.querySelectorAll('form label')).toHaveLength(1);
    expect(host.textContent).not.toMatch('No.');
    press('Start');
    expect(choices()).toEqual([{ num_ranks: 3 }]);
  });

  it('says while it waits for the server, and can be used already', () => {
    show({});
    expect(host.textContent).toMatch('Loading options');
    press('Start');
    expect(choices()).toEqual([{ num_ranks: 2 }]);
  });

  it('offers the nodes of a cluster, and says what each has', async () => {
    await showForm();
    press('More options');
    expect(host.textContent).toContain('n1 (this node): 4 GPUsn2: 2 GPUs');
    const engine = [...host.querySelectorAll('select')].find(
      ({ labels }) => labels[0].textContent === 'Run on'
    );
    act(() => {
      if (engine) {
        engine.value = 'slurm';
        engine.dispatchEvent(new Event('change', { bubbles: true }));
      }
    });
    write('Nodes', '3');
    expect(errors()).toEqual(['Enter a number from 1 to 2.']);
    write('Nodes', '2');
    press('Start');
    expect(choices()).toEqual([{ num_ranks: 3, engine: 'slurm', nodes: 2 }]);
  });
});
