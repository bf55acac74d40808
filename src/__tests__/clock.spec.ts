import { Clock } from '../ui/clock';

describe('Clock', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('runs only while it is on and somebody listens', () => {
    const clock = new Clock();
    const listener = jest.fn();
    const stop = clock.subscribe(listener);
    expect(jest.getTimerCount()).toBe(0);

    clock.isOn = true;
    expect(jest.getTimerCount()).toBe(1);
    const before = clock.now();
    jest.advanceTimersByTime(3000);
    expect(clock.now()).toBe(before + 3);

    clock.isOn = false;
    expect(jest.getTimerCount()).toBe(0);
    clock.isOn = true;
    stop();
    expect(jest.getTimerCount()).toBe(0);
  });
});
