import {
  correctServerTime,
  serverTime,
  setServerTime
} from '../model/serverTime';

describe('the time of the server', () => {
  let now: jest.SpyInstance<number>;

  beforeEach(() => {
    now = jest.spyOn(Date, 'now').mockReturnValue(0);
    setServerTime(1000);
  });

  afterEach(() => now.mockRestore());

  it('goes on between messages', () => {
    now.mockReturnValue(100_000);
    expect(serverTime()).toBe(1100);
  });

  it('is not that of a message which came late', () => {
    now.mockReturnValue(100_000);
    correctServerTime(1020);
    expect(serverTime()).toBe(1100);
    correctServerTime(1105);
    expect(serverTime()).toBe(1105);
  });

  it('is set back with its clock', () => {
    now.mockReturnValue(100_000);
    correctServerTime(1020);
    correctServerTime(1015);
    expect(serverTime()).toBe(1015);
  });
});
