import { ApiError } from '../model/restClient';
import type { IPool } from '../model/contract';
import { VariablesModel } from '../model/variables';
import type { IVariables } from '../model/variablesContract';
import { emitChanged, makeModel, makePool, makeRank } from './samples';
import { makeVariable, makeVariables } from './variableSamples';

/** Whose answers a test gives. */
function setUp(pool: IPool | null = makePool()) {
  const asked: { resolve(list: IVariables): void; reject(e: Error): void }[] =
    [];
  const ask = () =>
    new Promise<IVariables>((resolve, reject) =>
      asked.push({ resolve, reject })
    );
  const model = makeModel({
    pool,
    variables: jest.fn(ask),
    checkVariables: jest.fn(ask)
  });
  const turnTo = (pool: IPool | null) => {
    Object.assign(model, { pool });
    emitChanged(model);
  };
  const variables = new VariablesModel(model, model.requests);
  return { model, variables, asked, turnTo };
}

/** What the ranks do, and since when. */
function poolWith(...states: ['idle' | 'busy', number][]): IPool {
  return makePool({
    ranks: states.map(([state, since], rank) =>
      makeRank(rank, { state, since })
    )
  });
}

const wait = () => jest.advanceTimersByTimeAsync(300);
const X = makeVariables([makeVariable('x')]);

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

it('asks only while somebody looks', async () => {
  const { model, variables, asked, turnTo } = setUp();
  await wait();
  expect(model.requests.variables).not.toHaveBeenCalled();
  const watching = variables.watch();
  await wait();
  expect(model.requests.variables).toHaveBeenCalledTimes(1);
  expect(model.requests.variables).toHaveBeenCalledWith('p1');
  asked[0].resolve(X);
  await wait();
  expect(variables.list).toBe(X);
  watching.dispose();
  turnTo(poolWith(['idle', 200], ['idle', 200]));
  await wait();
  expect(model.requests.variables).toHaveBeenCalledTimes(1);
  expect(variables.isOld).toBe(true);
  variables.watch();
  await wait();
  expect(model.requests.variables).toHaveBeenCalledTimes(2);
});

it('asks once after each cell, when no rank runs it any more', async () => {
  const { model, variables, asked, turnTo } = setUp();
  variables.watch();
  await wait();
  asked[0].resolve(X);
  await wait();
  expect(variables.isOld).toBe(false);
  turnTo(poolWith(['busy', 200], ['busy', 200]));
  await wait();
  turnTo(poolWith(['idle', 201], ['busy', 200]));
  await wait();
  expect(model.requests.variables).toHaveBeenCalledTimes(1);
  expect(variables.isOld).toBe(true);
  turnTo(poolWith(['idle', 201], ['idle', 202]));
  emitChanged(model);
  await wait();
  await wait();
  expect(model.requests.variables).toHaveBeenCalledTimes(2);
});

it('asks ranks that did not respond again, but not for ever', async () => {
  const { model, variables, asked } = setUp();
  const some = makeVariables([], { ranks: [0], silent: [1] });
  const asks = (count: number) =>
    expect(model.requests.variables).toHaveBeenCalledTimes(count);
  variables.watch();
  await wait();
  asked[0].resolve(some);
  await jest.advanceTimersByTimeAsync(4000);
  asks(1);
  expect(variables.isOld).toBe(false);
  await jest.advanceTimersByTimeAsync(2000);
  asks(2);
  asked[1].resolve(some);
  await jest.advanceTimersByTimeAsync(6000);
  asks(3);
  asked[2].resolve(some);
  await jest.advanceTimersByTimeAsync(20_000);
  asks(3);
});

it('keeps what a check has found if ranks did not respond', async () => {
  const { model, variables, asked } = setUp();
  variables.watch();
  await wait();
  asked[0].resolve(X);
  await wait();
  void variables.check();
  asked[1].resolve(makeVariables([], { ranks: [0], silent: [1] }));
  await jest.advanceTimersByTimeAsync(20_000);
  expect(model.requests.variables).toHaveBeenCalledTimes(1);
});

it('does not ask between two cells of Run All', async () => {
  const { model, variables, turnTo } = setUp(
    poolWith(['idle', 100], ['idle', 100])
  );
  variables.watch();
  await wait();
  turnTo(poolWith(['busy', 200], ['busy', 200]));
  await jest.advanceTimersByTimeAsync(50);
  turnTo(poolWith(['idle', 201], ['idle', 201]));
  await jest.advanceTimersByTimeAsync(50);
  turnTo(poolWith(['busy', 202], ['busy', 202]));
  await wait();
  expect(model.requests.variables).toHaveBeenCalledTimes(1);
});

it('a list of some ranks is better than none, and worse than an older one of all', async () => {
  const { variables, asked, turnTo } = setUp(
    poolWith(['idle', 100], ['busy', 100])
  );
  const some = makeVariables([], { ranks: [0], busy: [1] });
  variables.watch();
  await wait();
  asked[0].resolve(some);
  await wait();
  expect(variables.list).toBe(some);
  turnTo(poolWith(['idle', 100], ['idle', 200]));
  await wait();
  asked[1].resolve(X);
  await wait();
  turnTo(poolWith(['idle', 100], ['idle', 300]));
  await wait();
  asked[2].resolve(some);
  await wait();
  expect(variables.list).toBe(X);
});

it('forgets the variables of another pool, and an answer that comes late', async () => {
  const { variables, asked, turnTo } = setUp();
  variables.watch();
  await wait();
  turnTo(makePool({ id: 'p2' }));
  asked[0].resolve(X);
  await wait();
  expect(variables.list).toBeNull();
  expect(asked).toHaveLength(2);
  turnTo(null);
  asked[1].resolve(X);
  await wait();
  expect(variables.list).toBeNull();
  expect(asked).toHaveLength(2);
});

it('tells why it failed, and asks again when told to', async () => {
  const { variables, asked } = setUp();
  variables.watch();
  await wait();
  const error = { code: 'value_failed', message: 'No.', hint: '' };
  asked[0].reject(new ApiError(error, 400));
  await wait();
  expect(variables.error?.message).toBe('No.');
  expect(asked).toHaveLength(1);
  variables.reload();
  await wait();
  asked[1].resolve(X);
  await wait();
  expect(variables.error).toBeNull();
  expect(variables.list).toBe(X);
});

it('a check replaces the list, also while a rank runs a cell', async () => {
  const { model, variables, asked } = setUp();
  variables.watch();
  await wait();
  asked[0].resolve(X);
  await wait();
  const checked = makeVariables([], { busy: [1], sentences: ['All equal.'] });
  void variables.check();
  void variables.check();
  expect(variables.isChecking).toBe(true);
  asked[1].resolve(checked);
  await wait();
  expect(model.requests.checkVariables).toHaveBeenCalledTimes(1);
  expect(variables.isChecking).toBe(false);
  expect(variables.list).toBe(checked);
  expect(model.requests.variables).toHaveBeenCalledTimes(1);
});
