"""Which rank keeps the others waiting, by their collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ...common.protocol.ranks.profile_messages import CollectiveTime, RankProfile, Spent
from ...common.time_intervals import Interval

Profiles = dict[int, RankProfile]

_MOST = 0.5
"""The part of a loss that its cause must explain."""
_USUALLY = 0.7
"""The part of the waiting that is for a rank which is called late."""


@dataclass(frozen=True)
class Late:
    """Ranks that keep the others waiting."""

    ranks: list[int]
    op: str
    """The collective with most of the waiting."""
    seconds: float
    """How much later than the others they begin it, on average."""
    cause: Spent | None
    """What they do longer than the others; `None` if nothing explains most of it."""


@dataclass
class Waiting:
    """How long ranks wait for each other, by rank and in all steps.

    `skew` is for how long a rank waited because another one began the cell later, which is no loss.
    `times` are when it waited for whatever reason. `late` is `None` if it is no rank in particular.
    """

    seconds: dict[int, float]
    skew: dict[int, float]
    late: Late | None = None
    times: dict[int, list[Interval]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Meeting:
    """A collective on all of its ranks."""

    op: str
    times: dict[int, CollectiveTime]
    begins: dict[int, float]
    """By rank, as if all had begun the cell at the same moment."""
    waits: dict[int, float] = field(default_factory=dict)

    @property
    def late(self) -> list[int]:
        """The ranks in the later half of the time in which they came."""
        middle = (min(self.begins.values()) + max(self.begins.values())) / 2
        return sorted(rank for rank, begin in self.begins.items() if begin > middle)

    def lateness(self, ranks: Sequence[int]) -> float:
        """Return how much later than the others some ranks were."""
        others = [begin for rank, begin in self.begins.items() if rank not in ranks]
        return fmean(self.begins[rank] for rank in ranks) - fmean(others)


def waiting(profiles: Profiles) -> Waiting:
    """Return how long ranks wait for each other, and which are late."""
    found = Waiting(dict.fromkeys(profiles, 0.0), dict.fromkeys(profiles, 0.0))
    found.times = {rank: [] for rank in profiles}
    meetings = list(_meetings(profiles))
    for meeting in meetings:
        last = max(meeting.begins.values())
        really_last = max(time.begin for time in meeting.times.values())
        for rank, time in meeting.times.items():
            # If something was computed meanwhile, the last part of the time is what is waited.
            alone = max(time.begin, time.end - time.exposed)
            waited = min(time.exposed, max(0.0, really_last - alone))
            if waited:
                found.times[rank].append((alone, alone + waited))
            seconds = min(waited, max(0.0, last - meeting.begins[rank]))
            meeting.waits[rank] = seconds
            found.seconds[rank] += seconds
            found.skew[rank] += waited - seconds
    found.late = _late(meetings)
    return found


def _meetings(profiles: Profiles) -> Iterable[_Meeting]:
    by_key: dict[tuple[str, int, str], dict[int, CollectiveTime]] = defaultdict(dict)
    for rank, profile in profiles.items():
        for time in profile.collectives:
            by_key[time.group, time.number, time.op][rank] = time
    common_start = max((profile.started for profile in profiles.values()), default=0.0)
    met: set[int] = set()
    for (_, _, op), times in sorted(
        by_key.items(), key=lambda one: min(t.begin for t in one[1].values())
    ):
        if len(times) < 2:
            continue
        begins = {}
        for rank, time in times.items():
            profile = profiles[rank]
            # Until ranks meet for the first time, it matters when they began the cell.
            is_first = rank not in met and not profile.dropped
            begins[rank] = time.begin + (common_start - profile.started if is_first else 0.0)
        met |= times.keys()
        yield _Meeting(op, times, begins)


def _late(meetings: list[_Meeting]) -> Late | None:
    """Return which ranks are late, if these are always the same."""
    total = sum(sum(meeting.waits.values()) for meeting in meetings)
    kept_waiting: dict[int, float] = defaultdict(float)
    for meeting in meetings:
        for rank in meeting.late:
            kept_waiting[rank] += sum(meeting.waits.values())
    ranks = sorted(r for r, seconds in kept_waiting.items() if seconds >= _USUALLY * total > 0)
    theirs = [m for m in meetings if m.late and set(m.late) <= set(ranks)]
    by_op: dict[str, list[_Meeting]] = defaultdict(list)
    for meeting in theirs:
        by_op[meeting.op].append(meeting)
    if not by_op:
        return None
    op = max(by_op, key=lambda name: sum(sum(m.waits.values()) for m in by_op[name]))
    worst = max(sum(meeting.waits.values()) for meeting in by_op[op])
    real = [m for m in by_op[op] if sum(m.waits.values()) >= worst / 10]  # not those without a wait
    seconds = fmean(meeting.lateness(meeting.late) for meeting in real)
    return Late(ranks, op, seconds, _cause(theirs))


def _cause(meetings: list[_Meeting]) -> Spent | None:
    """Return what late ranks do longer than the others, if that explains most of it."""
    excess: dict[tuple[str, str], Spent] = {}
    lost = 0.0
    for meeting in meetings:
        lost += meeting.lateness(meeting.late)
        for spent in _excess(meeting):
            key = (spent.on, spent.name)
            seconds = spent.seconds + (excess[key].seconds if key in excess else 0.0)
            excess[key] = Spent(spent.on, spent.name, seconds)
    enough = [spent for spent in excess.values() if spent.seconds >= _MOST * lost]
    kinds = ("annotation", "input", "gpu", "place")  # what users have named says most
    return min(enough, key=lambda spent: (kinds.index(spent.on), -spent.seconds), default=None)


def _excess(meeting: _Meeting) -> Iterable[Spent]:
    late = meeting.late
    spent: dict[tuple[str, str], dict[int, Spent]] = defaultdict(dict)
    for rank, time in meeting.times.items():
        for what in time.before:
            spent[what.on, what.name][rank] = what
    for by_rank in spent.values():
        mean = {
            is_late: fmean(
                by_rank[rank].seconds if rank in by_rank else 0.0
                for rank in meeting.times
                if (rank in late) == is_late
            )
            for is_late in (True, False)
        }
        one = next(iter(by_rank.values()))
        yield Spent(one.on, one.name, mean[True] - mean[False])
