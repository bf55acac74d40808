import { Series } from '../model/series';

describe('Series', () => {
  it('has the mean of each column, at the end the newest', () => {
    const series = new Series(40, 4);
    [10, 20].forEach((value, second) => series.push(100 + second, value));
    series.push(110, 60);
    expect(series.columns).toEqual([null, null, 15, 60]);
  });

  it('drops what is too old', () => {
    const series = new Series(30, 3);
    [1, 2, 3, 4].forEach(value => series.push(value * 10, value));
    expect(series.columns).toEqual([2, 3, 4]);
    series.push(1000, 9);
    expect(series.columns).toEqual([4, 4, 9]);
  });

  it('holds a value until the next, but not over a gap', () => {
    const series = new Series(60, 6);
    series.push(0, 5);
    series.push(20, 7);
    series.push(25, null);
    series.push(50, 8);
    expect(series.columns).toEqual([5, 5, 7, null, null, 8]);
  });

  it('stays the same array while nothing changes', () => {
    const series = new Series(30, 3);
    [0, 10, 20].forEach(time => series.push(time, 4));
    const { columns } = series;
    series.push(25, 4);
    series.push(90, 4);
    expect(series.columns).toBe(columns);
    series.push(91, 5);
    expect(series.columns).not.toBe(columns);
  });

  it('begins again when the clock is set back', () => {
    const series = new Series(30, 3);
    [1000, 1010, 1020].forEach(time => series.push(time, 1));
    series.push(900, 5);
    series.push(910, 6);
    expect(series.columns).toEqual([null, 5, 6]);
  });

  it('ignores what comes from before', () => {
    const series = new Series(30, 3);
    series.push(100, 4);
    series.push(50, 9);
    expect(series.columns).toEqual([null, null, 4]);
  });
});
