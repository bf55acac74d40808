import type { NotebookPanel } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { CellHistory } from '../model/cells';
import { errorsOf } from '../model/startDraft';
import type { Draft } from '../model/startDraft';
import type { RankState } from '../model/contract';
import type { IProcess } from '../model/gpuContract';
import type { MemoryOwner } from '../model/gpuUse';
import { UNHEARD } from '../model/reading';
import { loadTranslations } from '../model/trans';
import { firstCells } from '../notebook/launcher/newNotebook';
import { sayWhere } from '../notebook/cells/magic';
import { RanksButton } from '../notebook/toolbar/ranksButton';
import { sayCell, sayCells } from '../timeline/cellWords';
import type { IColours } from '../timeline/colours';
import { METRICS, nameMetric } from '../timeline/metrics';
import { TimelineModel } from '../timeline/model';
import { sayNothing, sayTrouble } from '../timeline/notes';
import { Row } from '../timeline/row';
import { StatusItem } from '../panel/statusBar';
import { RunningPools } from '../panel/running';
import { askKill, askRestart } from '../ui/dialogs';
import { showTexts } from '../ui/textDialog';
import { sayLeaseholder, saySegment, sayWho } from '../words/gpuWords';
import { sayDeaths, sayPlacement, sayRestartDead } from '../words/poolWords';
import { loadLog, loadStacks } from '../words/rankTexts';
import { nameOf, placeOf, sayState } from '../words/rankWords';
import { startCode } from '../words/startCode';
import {
  GPU_0,
  makeCell,
  makeGpu,
  makeGpusMessage,
  makeInventory,
  makeProcess,
  makeTelemetry,
  makeUsage
} from './gpuSamples';
import { add, area, display, header, make, stream, tab } from './outputArea';
import { expectWhole, pseudo, textsIn } from './pseudo';
import {
  dialog,
  makeModel,
  makePool,
  makeRank,
  makeStart,
  until
} from './samples';
import { SCHEMA } from './startSchema';

beforeEach(() => {
  jest.spyOn(nullTranslator, 'load').mockReturnValue(pseudo);
  loadTranslations(nullTranslator);
});

afterEach(() => {
  jest.restoreAllMocks();
  document.body.replaceChildren();
});

/** Two ranks of a pool in these states, on a GPU each. */
function poolOf(...states: RankState[]) {
  const ranks = states.map((state, rank) =>
    makeRank(rank, { state, cell: 7, gpu: GPU_0, device: 'cuda:0' })
  );
  return makePool({ ranks, world_size: ranks.length });
}

describe('the words are whole messages', () => {
  it('of ranks', async () => {
    const usage = makeUsage(0, { call: 'all_reduce', waiting_since: 9 });
    const states: RankState[] = ['starting', 'idle', 'busy', 'dead'];
    const ranks = [7, null].flatMap(cell =>
      states.map(state => makeRank(0, { state, cell, exit: 'killed' }))
    );
    const said = ranks.flatMap(rank =>
      [usage, null].flatMap(usage =>
        (['ending', 'parked', 'running'] as const).map(phase =>
          sayState(rank, { ...UNHEARD, usage }, phase, 90)
        )
      )
    );
    const [rank] = poolOf('idle').ranks;
    const silent = { ...UNHEARD, isSilent: true };
    said.push(sayState(rank, silent, 'running', 90));
    expectWhole([...said, nameOf(rank), placeOf(rank)]);
  });

  it('of pools', () => {
    const pools = [poolOf('dead', 'dead'), poolOf('dead', 'idle')];
    expectWhole([
      ...pools.map(pool => sayDeaths(pool)),
      ...pools.map(pool => sayRestartDead(pool)),
      ...['cycle', 'free-memory', 'performance', 'map'].map(policy =>
        sayPlacement(policy)
      ),
      ...['all', '0', '0, 2'].map(where => sayWhere(where))
    ]);
  });

  it('of who has a GPU', () => {
    const pool = poolOf('idle');
    const known = { pools: new Map([['p1', pool]]), own: pool };
    const whos: IProcess['who'][] = [
      { kind: 'rank', pool: 'p1', rank: 0 },
      { kind: 'rank', pool: 'p2', rank: 0 },
      { kind: 'kernel', kernel_id: 'k1', name: 'a.ipynb' },
      { kind: 'mine' },
      { kind: 'other' },
      { kind: 'unknown' }
    ];
    const processes = whos.map(who => makeProcess({ who }));
    const owners: MemoryOwner[] = [
      { kind: 'rank', pool: 'p1', rank: 0 },
      ...(['kernel', 'mine', 'other', 'rest'] as const).map(kind => ({ kind }))
    ];
    const telemetry = makeTelemetry(makeGpusMessage(), {
      type: 'processes',
      gpus: { 'GPU-0': processes, 'GPU-1': [] }
    });
    expectWhole([
      ...processes.map(process => sayWho(process, known)),
      ...owners.map(owner => saySegment({ owner, bytes: 2 ** 30 })),
      ...['GPU-0', 'GPU-1'].map(uuid =>
        sayLeaseholder(telemetry.gpu(uuid), [{ pool, rank: 0 }], known)
      )
    ]);
  });

  it('of stacks, logs and code', async () => {
    const error = { code: 'x', message: 'No.', hint: '' };
    const model = makeModel({
      stack: (_, rank) =>
        rank ? Promise.resolve({ rank, text: '' }) : Promise.reject(error),
      log: (_, rank) => Promise.resolve({ rank, lines: [] })
    });
    const pool = makePool();
    const blocks = await loadStacks(model, pool, [0, 1, 2]);
    const [log] = await loadLog(model, pool, 0);
    const code = startCode({ env: { A: `"'\n` } });
    const comment = code.split('\n').find(line => line.startsWith('# ')) ?? '';
    expectWhole([
      ...blocks.map(({ heading }) => heading),
      log.text,
      comment.slice(2),
      ...firstCells()[0].source.slice(2).split('\n\n')
    ]);
  });

  it('of what is wrong in the start form', () => {
    const env = [{ name: 'A', value: null }];
    const drafts: Draft[] = [
      { num_ranks: 0, env },
      { timeout: 'x' },
      { env: [] }
    ];
    expectWhole(
      drafts.flatMap(draft => Object.values(errorsOf(SCHEMA, draft, null)))
    );
  });
});

describe('the timeline has whole messages', () => {
  const telemetry = makeTelemetry(makeGpusMessage(), {
    type: 'usage',
    pools: {
      p1: [makeUsage(0, { call: 'barrier', waiting_since: 9 }), makeUsage(1)]
    }
  });
  const pool = poolOf('busy', 'busy');
  const pools = new Map([['p1', pool]]);

  it('of cells', () => {
    const model = makeModel({ pools, telemetry });
    const history = new CellHistory();
    const ends = [null, 20, 10.1];
    const cells = [7, null].flatMap(cell =>
      ends.map((end, index) =>
        makeCell(
          `${cell} ${index}`,
          [
            [10, end],
            [10, end]
          ],
          { cell }
        )
      )
    );
    history.take({ type: 'cells', complete: true, cells });
    const { all } = history;
    const said = [...all.map(run => sayCell(run, 90, model)), sayCells(all)];
    expectWhole(said.flatMap(({ parts, title }) => [...parts, title]));
  });

  it('of GPUs', () => {
    const model = makeModel({ pools, telemetry, gpus: makeInventory() });
    const timeline = new TimelineModel(model, model, {
      gpuHistory: () => Promise.reject(new Error(pseudo.__('No.')))
    });
    const colours = { curve: () => ({}) } as unknown as IColours;
    const texts = METRICS.flatMap(metric => {
      timeline.choose({ metric });
      const row = new Row(document.body, makeGpu(0), timeline);
      const { name, who } = row.update(colours, null);
      return [name, who, nameMetric(metric)];
    });
    expectWhole([...texts, ...textsIn(document.body)]);
  });

  it('of what is wrong', async () => {
    const models = [
      makeModel({ connection: { state: 'missing' } }),
      makeModel(),
      makeModel({ gpus: makeInventory({ gpus: [], reason: null }) })
    ];
    const stale = makeModel({ connection: { state: 'stale', since: 0 } });
    const timeline = new TimelineModel(stale, stale, {
      gpuHistory: () => Promise.reject(new Error(pseudo.__('No.')))
    });
    const lost = new TimelineModel(models[1], models[1], {
      gpuHistory: () => Promise.reject(new Error(pseudo.__('No.')))
    });
    lost.isShown = true;
    await until(() => lost.error !== null);
    lost.isShown = false;
    expectWhole([
      ...models.flatMap(model => {
        const { title, more } = sayNothing(model)!;
        return [title, ...more];
      }),
      sayTrouble(timeline),
      sayTrouble(lost)
    ]);
  });
});

describe('other parts have whole messages', () => {
  const commands = new CommandRegistry();
  const shown = [
    null,
    makePool(),
    makePool({ state: 'CONFIGURING' }),
    poolOf('dead', 'idle'),
    makePool({ state: 'FAILED', ended: 9 })
  ];

  it.each(shown)('in the toolbar: %#', async pool => {
    const model = makeModel({ pools: new Map(pool && [['p1', pool]]) });
    const panel = {
      sessionContext: {
        specsManager: {},
        kernelChanged: new Signal({}),
        session: { kernel: { id: 'k1', name: 'python' } }
      }
    } as unknown as NotebookPanel;
    const start = makeStart(model);
    const item = new RanksButton({
      ...{ panel, model, start, commands, makeCurrent: jest.fn() }
    });
    Widget.attach(item, document.body);
    await until(() => item.node.querySelector('button') !== null);
    expectWhole(textsIn(item.node));
    item.dispose();
  });

  it.each(shown.slice(1))(
    'in the status bar and in Running: %#',
    async pool => {
      const model = makeModel({ pool, pools: new Map([['p1', pool!]]) });
      const item = new StatusItem(model, model, jest.fn());
      Widget.attach(item, document.body);
      await until(() => item.node.querySelector('button') !== null);
      expectWhole(textsIn(item.node));
      item.dispose();
      const pools = new RunningPools(model, commands);
      const details = pools.running().map(({ detail }) => detail?.() ?? '');
      expectWhole([pools.name, pools.shutdownLabel, ...details]);
    }
  );

  it('in the tabs of outputs', async () => {
    make([], Infinity, {});
    await add(
      header({ 3: 'E' }, 16),
      stream('[0-15] all\n[11]   odd\n'),
      display('<b>x</b>', {}, 'text/html')
    );
    await until(() => textsIn(area.node).some(text => text.includes('differ')));
    tab(1).click();
    const bar = area.node.querySelector('.jp-dist-OutputTabs')!;
    expectWhole(textsIn(bar).filter(text => !/^(\d+|[●○])$/.test(text)));
    area.dispose();
  });

  it.each([
    ['kill', () => askKill(1)],
    ['restart', () => askRestart([1])],
    ['texts', () => showTexts(pseudo.__('Log'), async () => [])]
  ])('in dialogs: %s', async (_, open) => {
    void open();
    await until(() => (dialog()?.textContent ?? '').includes('⟦'));
    expectWhole(textsIn(dialog()!));
    dialog()!.querySelector<HTMLElement>('.jp-mod-reject')!.click();
    await until(() => dialog() === null);
  });
});
