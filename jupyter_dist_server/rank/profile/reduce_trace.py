"""Reduces a trace to the numbers that are compared between ranks."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean

from ...common.protocol.ranks.profile_messages import (
    CollectiveTime,
    RankProfile,
    Spent,
    SpentOn,
    StepFacts,
)
from ...common.recorded_collectives import TorchEntry
from ...common.time_intervals import Interval, coarse, common, length, union, within, without
from .circumstances import own_cores, size_of
from .read_trace import Communication, Trace
from .recording import Sampler
from .step_watch import StepWatch

_MOST = 2000  # collectives that are reported
_TOLD = 5  # items that are reported for each collective
_MOST_STEPS = 1001
"""Moments between which the reported steps are."""
_MOST_SPANS = 1000
"""Intervals that are reported in which the rank computed, and the same for communication."""
_SHORT = 0.0005
"""Seconds below which an item is not reported."""

_Label = tuple[SpentOn, str]
_Labelled = list[tuple[float, float, _Label]]


def reduce(
    trace: Trace,
    sampler: Sampler,
    entries: Sequence[TorchEntry],
    steps: Sequence[float],
    cell: Interval,
    watch: StepWatch,
) -> RankProfile:
    """Return a rank's summary of the trace of a cell, which began and ended at the times in `cell`.

    `sampler` has seen the lines of its main thread, `entries` the cell's collectives in torch's
    flight recorder, `steps` the ends of the optimizer's steps, and `watch` has watched these.
    """
    started, ended = cell
    dropped = 1 if len(steps) > 2 else 0
    begin = steps[0] if dropped else started
    end = steps[-1] if steps else ended
    if trace.on_gpu:  # the host runs ahead of it
        begin = trace.done(begin) if dropped else begin
        end = trace.done(end)
    inputs = union(trace.inputs())
    busy = union(trace.kernels() if trace.on_gpu else trace.operations())
    spans = union((c.begin, c.end) for c in trace.communication)
    if trace.on_gpu:
        inputs = without(inputs, busy)  # the GPU did not wait for it
    else:
        busy = without(busy, inputs)
    window = [(begin, end)]
    alone = without(without(spans, busy), inputs)
    gpu: SpentOn = "gpu"
    labelled: _Labelled = [(b, e, ("annotation", name)) for (b, e), name in trace.annotations()]
    labelled += [(b, e, ("input", "DataLoader")) for b, e in inputs]
    labelled += [(b, e, (gpu, "kernels")) for b, e in busy if trace.on_gpu]
    hidden = busy if trace.on_gpu else []  # the GPU does not wait for the host then
    places: _Labelled = [
        (b, e, ("place", sample.place))
        for sample in sampler.samples()
        for b, e in without([(sample.begin, sample.end)], hidden)
    ]
    in_window = sum(not c.is_message and begin <= c.begin < end for c in trace.communication)
    told = [c for c in _numbered(trace.communication, entries) if begin <= c[0].begin < end]
    rest = without(without(without(window, busy), inputs), spans)
    return RankProfile(
        status="ok",
        started=started,
        begin=begin,
        end=end,
        steps=len(steps) - dropped,
        durations=[
            now - before
            for before, now in pairwise([started, *steps][dropped : dropped + _MOST_STEPS])
        ],
        dropped=dropped,
        compute=length(common(busy, window)),
        input=length(common(inputs, window)),
        communication=length(common(spans, window)),
        exposed=length(common(alone, window)),
        computing=coarse(common(busy, window), _MOST_SPANS),
        communicating=coarse(common(alone, window), _MOST_SPANS),
        copies=length(common(union(trace.copies()), rest)),
        spent=_told(_spent(places, [(b, e, 0) for b, e in rest]).get(0, Counter())),
        collectives=_collectives(told[:_MOST], alone, labelled + places, begin),
        left_out=in_window - min(len(told), _MOST),
        facts=_facts(trace, entries, watch, window[0], dropped, in_window, sampler.workers),
        memory=trace.memory,
    )


def _facts(
    trace: Trace,
    entries: Sequence[TorchEntry],
    watch: StepWatch,
    window: Interval,
    dropped: int,
    collectives: int,
    workers: set[int],
) -> StepFacts:
    begin, end = window
    growth, grows = watch.growth()
    sizes = [size for entry in entries if (size := size_of(entry))]
    return StepFacts(
        operations=sum(begin <= moment < end for moment in trace.outer_operations()),
        on_gpu=trace.on_gpu,
        collectives=collectives,
        bytes=fmean(sizes) if sizes else 0.0,
        workers=min(workers, default=None),
        cores=own_cores(),
        has_ddp=trace.has_ddp,
        pauses=length(common(union(watch.pauses), [window])),
        compiles=watch.compiles(dropped),
        growth=growth,
        grows=grows,
    )


def _numbered(
    communication: Iterable[Communication], entries: Sequence[TorchEntry]
) -> list[tuple[Communication, str, int]]:
    """Return the collectives with group and number; the recorder knows the last ones of gloo."""
    collectives = [c for c in communication if not c.is_message]
    last = collectives[-len(entries) :]
    if entries and [c.name for c in last] == [entry.profiling_name for entry in entries]:
        return [
            (c, entry.process_group[0], entry.collective_seq_id)
            for c, entry in zip(last, entries, strict=True)
        ]
    counts: Counter[str] = Counter()
    numbered = []
    for collective in collectives:
        counts[collective.group] += 1
        numbered.append((collective, collective.group, counts[collective.group]))
    return numbered


def _collectives(
    told: list[tuple[Communication, str, int]],
    alone: list[Interval],
    labelled: _Labelled,
    begin: float,
) -> list[CollectiveTime]:
    exposed, counted = {}, 0.0
    for c, *_ in sorted(told, key=lambda one: one[0].end):
        # Of simultaneous collectives, the rank waits for the first one that ends.
        exposed[id(c)] = length(within(alone, max(c.begin, counted), c.end))
        counted = max(counted, c.end)
    segments, last = [], begin
    for place, (c, *_) in enumerate(told):
        segments.append((last, c.begin, place))
        last = max(last, c.end)
    spent = _spent(labelled, [segment for segment in segments if segment[0] < segment[1]])
    return [
        CollectiveTime(
            group=group,
            number=number,
            op=c.op,
            begin=c.begin,
            end=c.end,
            exposed=exposed[id(c)],
            before=_told(spent.get(place, Counter())),
        )
        for place, (c, group, number) in enumerate(told)
    ]


def _spent(
    labelled: _Labelled, segments: list[tuple[float, float, int]]
) -> dict[int, Counter[_Label]]:
    """Return the time of each activity in segments of time, which do not overlap."""
    found: dict[int, Counter[_Label]] = {}
    begins = [begin for begin, _, _ in segments]
    for begin, end, label in labelled:
        place = max(0, bisect_right(begins, begin) - 1)
        while place < len(segments) and segments[place][0] < end:
            b, e, key = segments[place]
            if (seconds := min(e, end) - max(b, begin)) > 0:
                found.setdefault(key, Counter())[label] += seconds  # type: ignore[assignment]
            place += 1
    return found


def _told(spent: Counter[_Label]) -> list[Spent]:
    told: list[Spent] = []
    kinds: Counter[SpentOn] = Counter()
    for (on, name), seconds in spent.most_common():
        if seconds >= _SHORT and kinds[on] < _TOLD:
            kinds[on] += 1
            told.append(Spent(on, name, seconds))
    return told
