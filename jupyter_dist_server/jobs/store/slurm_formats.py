"""Times, sizes and moments as Slurm writes and reads them."""

from __future__ import annotations

import contextlib
import re
import time
from datetime import datetime, timedelta

from ...common.errors import DistError
from ...common.protocol.offers import InLine
from ...common.units import LONGEST

_LARGEST = 2**60
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_SOON = re.compile(r"now(?:\s*\+\s*(\d{1,12})\s*(second|minute|hour|day|week)?s?)?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MOMENTS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%m/%d/%y", "%m%d%y")
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M%p", "%I:%M:%S%p", "%I%p")
_WORDS = {"midnight": "00:00", "noon": "12:00", "fika": "15:00", "teatime": "16:00"}


def check_grace(seconds: int) -> float:
    """Return the seconds between SIGTERM and SIGKILL; refuse negative ones, or more than a day."""
    if 0 <= seconds <= 86400:
        return float(seconds)
    message = f"A grace time of {seconds} seconds is not possible."
    raise DistError("bad_time", message, "Use 0 to 86400 seconds.", "grace")


def check_priority(priority: int) -> None:
    """Refuse a priority that the store cannot keep."""
    if abs(priority) >= 2**31:
        raise DistError("bad_option", "A priority has at most 9 digits.", field="priority")


def read_size(text: str) -> int:
    """Return the bytes of a size such as ``20G``; a number alone is in MiB, as for Slurm."""
    if match := _SIZE.fullmatch(text.strip()):
        size = float(match[1]) * 1024 ** " KMGT".index((match[2] or "M").upper())
        if size <= _LARGEST:
            return int(size)
    raise DistError("bad_size", f"“{text}” is not a size.", "Use a number and K, M, G or T.")


def read_gpu_memory(text: str) -> int:
    """Return the bytes of a size of GPU memory such as ``20G``; a number alone is refused.

    Slurm and gflow mean MiB by it, and people who think of a GPU mean GiB.
    """
    if (match := _SIZE.fullmatch(text.strip())) and not match[2]:
        number = match[1]
        hint = f"Write {number}G for {number} GiB, or {number}M for {number} MiB."
        raise DistError("bad_size", f"“{text}” has no unit.", hint)
    return read_size(text)


def read_moment(text: str, now: float) -> float:
    """Return the seconds since the epoch of a moment: ``now+2hours``, ``18:30``, ``2026-03-01``.

    The forms are those of ``sbatch --begin``. A time of day that is over is tomorrow's. One that a
    change of clocks leaves out is the next that exists.
    """
    text = _WORDS.get(text.strip().lower(), text.strip())
    if text.lower() == "today":
        return now
    if text.lower() == "tomorrow":
        day = datetime.fromtimestamp(now) + timedelta(days=1)
        return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    if match := _SOON.fullmatch(text.lower()):
        later = float(int(match[1] or 0) * _SECONDS[match[2] or "second"])
        if later <= LONGEST:
            return now + later
    for form in _MOMENTS:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form).timestamp()
    for form in _TIMES:
        with contextlib.suppress(ValueError):
            time_of_day = datetime.strptime(text, form).time()
            moment = datetime.combine(datetime.fromtimestamp(now), time_of_day)
            if moment.timestamp() <= now:
                moment += timedelta(days=1)
            return moment.timestamp()
    raise DistError(
        "bad_time",
        f"“{text}” is not a time.",
        "Use now+2hours, HH:MM, noon, tomorrow, YYYY-MM-DD or YYYY-MM-DDTHH:MM[:SS].",
    )


def write_place(line: InLine) -> str:
    """Write a place in line: ``number 3 in line, about 14:20``."""
    place = f"number {line.place} in line"
    if line.expected is None:
        return place
    moment = write_moment(line.expected)
    return f"{place}, {f'by {moment} at the latest' if line.certain else f'about {moment}'}"


def write_moment(moment: float | None) -> str:
    """Write a moment: the time of today, or the day and the time."""
    if moment is None:
        return "N/A"
    then = time.localtime(moment)
    today = time.strftime("%F", then) == time.strftime("%F")
    return time.strftime("%H:%M" if today else "%d %b %H:%M", then)
