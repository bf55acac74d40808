import { Recording, stepOf } from '../timeline/recording';

const at = (recording: Recording) => recording.column('a', 'utilization');

function record(span: number, ...samples: [number, number | null][]) {
  const recording = new Recording(span, ['a']);
  for (const [time, utilization] of samples) {
    recording.add(time, () => ({ utilization }));
  }
  return recording;
}

describe('recording', () => {
  it('goes on where the history ends', () => {
    const recording = new Recording(60, ['a', 'b']);
    recording.addHistory({
      step: 1,
      times: [10, 11],
      gpus: { a: { utilization: [1, 2], power: [70, 71] } }
    });
    recording.add(11, () => ({ utilization: 99 }));
    recording.add(12, uuid => (uuid === 'a' ? { utilization: 3 } : {}));
    expect(recording.times).toEqual([10, 11, 12]);
    expect(at(recording)).toEqual([1, 2, 3]);
    expect(recording.column('a', 'power')).toEqual([70, 71, null]);
    expect(recording.column('b', 'power')).toEqual([null, null, null]);
    expect(recording.column('c', 'power')).toEqual([]);
    expect(recording.end).toBe(12);
  });

  it('has a gap where nobody sampled', () => {
    const recording = record(60, [1, 5], [2, 5], [3, 5], [20, 7], [21, 7]);
    expect(at(recording)).toEqual([5, 5, 5, null, 7, 7]);
  });

  it('has none where the rows of the server become finer', () => {
    const recording = record(3600, [0, 1], [24, 1], [48, 1], [52, 1], [56, 1]);
    expect(at(recording)).toEqual([1, 1, 1, 1, 1]);
  });

  it('sums up samples that come faster than there are pixels', () => {
    expect(stepOf(900)).toBe(1);
    expect(stepOf(3600)).toBe(4);
    const samples = [0, 1, 2, 3, 4, 5].map((t): [number, number] => [t, t]);
    const recording = record(3600, ...samples);
    expect(recording.times).toEqual([0, 4]);
    expect(at(recording)).toEqual([1.5, 4.5]);
  });

  it('goes on when the clock of the server is set back', () => {
    const back = record(900, [100, 1], [101, 2], [300, 3], [102, 4], [103, 5]);
    expect(back.times.slice(-2)).toEqual([102, 103]);
    expect(at(back)).toEqual([1, 2, 4, 5]);
    expect(back.end).toBe(103);
    const further = record(60, [900, 1], [901, 2], [10, 3]);
    expect(further.times).toEqual([10]);
    expect(at(further)).toEqual([3]);
  });

  it('does not grow for ever', () => {
    const recording = new Recording(60, ['a']);
    for (let time = 0; time < 5000; time++) {
      recording.add(time, () => ({ utilization: time }));
    }
    expect(recording.times.length).toBeLessThan(200);
    expect(recording.times[0]).toBeLessThanOrEqual(4999 - 60);
    expect(at(recording)).toEqual(recording.times);
  });
});
