"""The merger alone: every interleaving, with times given and nothing published."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from jupyter_dist_server.notebook.output.merged.merge_outputs import REDRAW_EVERY, WINDOW, Merger
from jupyter_dist_server.notebook.output.merged.unfinished_lines import PROMPT_AFTER
from jupyter_dist_server.notebook.output.publish import Clear, Display, Publication, Text, overwrite


class Screen:
    """Applies publications as a notebook does."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str | None, str]] = []

    def show(self, publications: list[Publication]) -> None:
        for piece in publications:
            if isinstance(piece, Clear):
                self.pieces.clear()
            elif isinstance(piece, Text):
                self.pieces.append((None, piece.text))
            elif isinstance(piece, Display) and piece.update:
                self.pieces = [
                    (name, piece.data["text/plain"] + "\n" if name == piece.display_id else text)
                    for name, text in self.pieces
                ]
            else:
                self.pieces.append((piece.display_id, piece.data["text/plain"] + "\n"))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for _, text in self.pieces for line in text.splitlines()]


def merger(size: int = 2) -> Merger:
    return Merger(range(size), size, "cell")


def say(m: Merger, rank: int, text: str, now: float, name: str = "stdout") -> None:
    m.feed(rank, "stream", {"name": name, "text": text}, now)


def lines_of(m: Merger, now: float, last: bool = False) -> list[str]:
    screen = Screen()
    screen.show(m.take(now, last))
    return screen.lines


def test_a_line_waits_for_the_other_ranks_but_not_for_long() -> None:
    m = merger()
    say(m, 0, "same\n", 0.0)
    assert lines_of(m, 0.0) == []
    assert m.next_time(0.0) == WINDOW
    say(m, 1, "same\n", WINDOW / 2)
    assert lines_of(m, WINDOW / 2) == ["[0-1] same"]
    say(m, 0, "alone\n", 1.0)
    assert lines_of(m, 1.0 + WINDOW / 2) == []
    assert lines_of(m, 1.0 + WINDOW) == ["[0]   alone"]


def test_late_text_joins_its_twin() -> None:
    m, screen = merger(3), Screen()
    say(m, 0, "start\nepoch 1\n", 0.0)
    say(m, 2, "start\n", 0.0)
    screen.show(m.take(1.0))
    assert screen.lines == ["[0,2] start", "[0]   epoch 1"]
    say(m, 1, "start\nextra\nepoch 1\n", 5.0)
    screen.show(m.take(5.0))
    assert screen.lines == ["[0-2] start", "[1]   extra", "[0-1] epoch 1"]
    say(m, 2, "epoch 1\n", 5.0 + REDRAW_EVERY / 2)
    screen.show(m.take(5.0 + REDRAW_EVERY / 2))
    assert screen.lines[-1] == "[0-1] epoch 1", "a piece is drawn again only so often"
    assert m.next_time(5.0 + REDRAW_EVERY / 2) == 5.0 + REDRAW_EVERY
    screen.show(m.take(5.0 + REDRAW_EVERY))
    assert screen.lines == ["[0-2] start", "[1]   extra", "[0-2] epoch 1"]


def test_very_much_text_joins_its_twins_too() -> None:
    m, screen = merger(4), Screen()
    text = "".join(f"line {i}\n" for i in range(1500))
    for rank in range(4):
        say(m, rank, text, float(rank))
        screen.show(m.take(rank + 0.5))
    screen.show(m.take(9.0, last=True))
    assert screen.lines == ["[0-3]", *text.splitlines()[:1000], "[0-3]", *text.splitlines()[1000:]]


def test_where_displays_cannot_be_drawn_again_late_text_comes_again() -> None:
    m, screen = Merger(range(2), 2, "cell", updates=False), Screen()
    say(m, 0, "same\n", 0.0)
    screen.show(m.take(1.0))
    say(m, 1, "same\n", 2.0)
    screen.show(m.take(3.0))
    assert [name for name, _ in screen.pieces] == [None, None]
    assert screen.lines == ["[0]   same", "[1]   same"]


@pytest.mark.parametrize(
    ("text", "common"),
    [
        ("<f at 0x7efd097a3f30> is lost", "<f at 0x…> is lost"),
        ("DataLoader worker (pid 4711) is killed", "DataLoader worker (pid …) is killed"),
        ("worker (pid(s) 1, 2) exited", "worker (pid(s) …) exited"),
        ("listens at 127.0.0.1:4567, port 4567", "listens at 127.0.0.1:…, port …"),
    ],
)
def test_lines_that_differ_in_an_address_are_one(text: str, common: str) -> None:
    m, screen = merger(3), Screen()
    other = text.replace("7efd09", "12ab34").replace("4711", "12").replace("4567", "80")
    other = other.replace("1, 2", "3, 4")
    say(m, 0, f"{text}\n", 0.0)
    screen.show(m.take(1.0))
    assert screen.lines == [f"[0]   {text}"]
    say(m, 1, f"{text}\n", 1.0)
    screen.show(m.take(2.0))
    assert screen.lines == [f"[0-1] {text}"]
    say(m, 2, f"{other}\n", 2.0)
    screen.show(m.take(3.0, last=True))
    assert screen.lines == [f"[0-2] {common}"]


def test_errors_that_differ_in_an_address_are_one() -> None:
    m = merger(3)
    for rank, where in ((0, "0x1a"), (1, "0x2b")):
        error = {"ename": "ValueError", "evalue": f"at {where}", "traceback": ["line", where]}
        m.feed(rank, "error", error, 0.0)
    common = {"ename": "ValueError", "evalue": "at 0x…", "traceback": ["line", "0x…"]}
    assert m.errors == [([0, 1], common)]
    m.feed(2, "error", common | {"traceback": ["another line", "0x1a"]}, 0.0)
    assert [ranks for ranks, _ in m.errors] == [[0, 1], [2]]


def test_nothing_waits_for_a_rank_that_has_finished() -> None:
    m = merger()
    m.finish(1, 0.0)
    say(m, 0, "x\n", 0.0)
    assert lines_of(m, 0.0) == ["[0]   x"]


def test_an_extra_line_of_one_rank_does_not_spoil_the_merge() -> None:
    m = merger(4)
    say(m, 0, "extra\nsame\nsame 2\n", 0.0)
    for rank in (1, 2, 3):
        say(m, rank, "same\nsame 2\n", 0.0)
    assert lines_of(m, 0.0) == ["[0]   extra", "[0-3] same", "[0-3] same 2"]


def test_crossing_lines_keep_each_ranks_order() -> None:
    m = merger()
    say(m, 0, "a\nb\n", 0.0)
    say(m, 1, "b\na\n", 0.0)
    assert lines_of(m, 0.0, last=True) == ["[0]   a", "[0-1] b", "[1]   a"]


def test_lines_of_a_step_are_in_the_order_of_ranks_however_they_arrive() -> None:
    m, screen = merger(3), Screen()
    for step in range(3):
        for turn, rank in enumerate((2, 0, 1)):
            now = 10 * step + 0.4 * turn
            say(m, rank, f"step {step}\n  {rank}\n", now)
            screen.show(m.take(now + 0.3))
    lines = [
        line
        for s in range(3)
        for line in (f"[0-2] step {s}", *(f"[{r}]     {r}" for r in range(3)))
    ]
    assert screen.lines == lines


def test_a_burst_that_is_late_goes_before_higher_ranks_as_one() -> None:
    m, screen = merger(), Screen()
    say(m, 1, "b\n", 0.0)
    screen.show(m.take(0.5))
    say(m, 0, "a 1\n", 0.6)
    say(m, 0, "a 2\n", 0.65)
    screen.show(m.take(1.0))
    assert screen.lines == ["[0]   a 1", "[0]   a 2", "[1]   b"]


@pytest.mark.parametrize("seed", range(8))
def test_lines_that_name_their_step_are_sorted_by_it(seed: int) -> None:
    """16 ranks print ten times a second on a machine that lets each wait for up to 0.15 s."""
    chance, m, screen = random.Random(seed), merger(16), Screen()
    said = [
        (0.1 * step + chance.random() * 0.15, rank, f"step {step} rank {rank} {chance.random()}")
        for rank in range(16)
        for step in range(60)
    ]
    latest = dict.fromkeys(range(16), 0.0)
    events = []
    for at, rank, line in said:  # each rank's lines stay in order
        latest[rank] = max(latest[rank] + 0.001, at)
        events.append((latest[rank], rank, line))
    for now, rank, line in sorted(events):
        say(m, rank, f"{line}\n", now)
        screen.show(m.take(now))
    screen.show(m.take(100.0, last=True))
    numbers = re.findall(r"step (\d+) rank (\d+)", "\n".join(screen.lines))
    found = [(int(step), int(rank)) for step, rank in numbers]
    assert len(found) == 16 * 60
    wrong = sum(one > following for one, following in itertools.pairwise(found))
    assert wrong <= 16, "16 lines have a rank's number that is that of the step, too"


def test_a_line_of_the_next_step_stays_behind_the_step_before() -> None:
    m, screen = merger(), Screen()
    for step in range(4):
        for rank in (0, 1):
            now = step + rank / 10
            say(m, rank, f"{rank}.{step}\n", now)
            screen.show(m.take(now + 0.05))
    assert screen.lines == [f"[{rank}]   {rank}.{step}" for step in range(4) for rank in (0, 1)]


def test_what_came_long_after_is_shown_after() -> None:
    m, screen = merger(), Screen()
    say(m, 1, "early\n", 0.0)
    screen.show(m.take(1.0))
    say(m, 0, "late\n", 60.0)
    screen.show(m.take(61.0))
    assert screen.lines == ["[1]   early", "[0]   late"]


def test_a_late_line_never_moves_before_a_figure() -> None:
    m, screen = merger(), Screen()
    m.feed(
        1, "display_data", {"data": {"text/plain": "fig", "image/png": "a"}, "metadata": {}}, 0.0
    )
    say(m, 1, "b\n", 0.0)
    screen.show(m.take(0.5))
    say(m, 0, "a\n", 0.6)
    screen.show(m.take(1.0))
    assert screen.lines == ["[1]", "fig", "[0]   a", "[1]   b"]


def test_pieces_of_a_line_are_put_together() -> None:
    m = merger()
    for piece in ("hel", "lo", " world\n"):
        say(m, 0, piece, 0.0)
    say(m, 1, "hello world\n", 0.0)
    assert lines_of(m, 0.0) == ["[0-1] hello world"]


def test_stdout_and_stderr_do_not_merge_with_each_other() -> None:
    m = merger()
    say(m, 0, "x\n", 0.0, "stdout")
    say(m, 1, "x\n", 0.0, "stderr")
    assert lines_of(m, 0.0, last=True) == ["[0]   x", "[1]   x"]


def test_an_unfinished_line_is_shown_in_time_and_finished_in_place() -> None:
    m, screen = merger(), Screen()
    say(m, 0, "Password", 0.0)
    screen.show(m.take(0.0))
    assert screen.lines == []
    screen.show(m.take(PROMPT_AFTER))
    assert screen.lines == ["[0]   Password"]
    say(m, 0, " accepted\nnext\n", PROMPT_AFTER)
    m.finish(1, PROMPT_AFTER)
    screen.show(m.take(PROMPT_AFTER, last=True))
    assert screen.lines == ["[0]   Password accepted", "[0]   next"]


def test_a_long_unfinished_line_is_not_drawn_again_and_again_as_a_whole() -> None:
    merger, drawn = Merger([0], 1), 0
    for step in range(1000):
        merger.feed(0, "stream", {"name": "stdout", "text": "." * 1000}, step)
        drawn += sum(len(str(piece)) for piece in merger.take(step + 0.9))
    assert drawn < 4_000_000
    (whole,) = merger.take(1000, last=True)
    assert isinstance(whole, Display) and whole.data["text/plain"] == "[0] " + "." * 1_000_000


def test_a_bar_never_moves_before_what_its_rank_printed_earlier() -> None:
    m, screen = merger(), Screen()
    say(m, 0, "\r10%", 0.0)
    screen.show(m.take(1.0))  # rank 0 has a block of bars
    say(m, 1, "line\n", 1.0)
    screen.show(m.take(2.0))
    say(m, 1, "\r20%", 2.0)
    screen.show(m.take(3.0))
    assert screen.lines == ["[0]   10%", "[1]   line", "[1]   20%"]


def test_late_figure_joins_its_twin_but_not_across_other_output() -> None:
    m, screen = merger(), Screen()
    figure = {"data": {"text/plain": "fig", "image/png": "abc"}, "metadata": {}}
    m.feed(0, "display_data", figure, 0.0)
    screen.show(m.take(1.0))
    assert screen.lines == ["[0]", "fig"]
    m.feed(1, "display_data", figure, 2.0)
    screen.show(m.take(3.0))
    assert screen.lines == ["[0-1]", "fig"]
    say(m, 0, "x\n", 4.0)
    m.feed(0, "display_data", figure, 4.0)
    screen.show(m.take(5.0, last=True))
    assert screen.lines == ["[0-1]", "fig", "[0]   x", "[0]", "fig"]


def test_clear_output_waits_for_the_next_output_if_told_so() -> None:
    m, screen = merger(), Screen()
    say(m, 0, "old\n", 0.0)
    say(m, 1, "stays\n", 0.0)
    screen.show(m.take(1.0))
    m.feed(0, "clear_output", {"wait": True}, 1.0)
    screen.show(m.take(2.0))
    assert screen.lines == ["[0]   old", "[1]   stays"]
    say(m, 0, "new\n", 3.0)
    screen.show(m.take(4.0, last=True))
    assert screen.lines == ["[1]   stays", "[0]   new"]


def test_equal_errors_fold() -> None:
    m = merger(3)
    error = {"ename": "ValueError", "evalue": "x", "traceback": ["tb"]}
    m.feed(0, "error", error, 0.0)
    m.feed(2, "error", error, 0.1)
    m.feed(1, "error", error | {"evalue": "y", "traceback": ["other"]}, 0.2)
    assert [ranks for ranks, _ in m.errors] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("10%\r20%", "20%"),
        ("\r 50%\r100%", "100%"),
        ("abcdef\rxy", "xycdef"),
        ("line\r", "line"),
        ("\x1b[31mred\r\x1b[32mgreen", "\x1b[32mgreen"),
        ("plain", "plain"),
    ],
)
def test_carriage_returns_overwrite(raw: str, shown: str) -> None:
    assert overwrite(raw) == shown


def read_by_rank(lines: list[str], size: int) -> dict[int, list[str]]:
    """Read labelled lines; a label alone stands above the lines that follow it."""
    seen: dict[int, list[str]] = {rank: [] for rank in range(size)}
    above: list[int] = []
    for line in lines:
        if not (match := re.match(r"\[([\d,-]+)\]", line)):
            for rank in above:
                seen[rank].append(line.strip())
            continue
        above = []
        for part in match[1].split(","):
            first, _, last = part.partition("-")
            above += range(int(first), int(last or first) + 1)
        if line != match[0]:
            for rank in above:
                seen[rank].append(line[match.end() :].strip())
            above = []
    return seen


@pytest.mark.parametrize("seed", range(30))
def test_any_interleaving_loses_doubles_and_reorders_nothing(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randint(1, 5)
    said: dict[int, list[str]] = {rank: [] for rank in range(size)}
    pieces: dict[int, str] = {}
    for rank in range(size):
        said[rank] = [rng.choice(["a", "b", f"only {rank}", ""]) for _ in range(60)]
        pieces[rank] = "".join(line + "\n" for line in said[rank])
    assert show_in_pieces(rng, pieces, longest=30) == said


@pytest.mark.parametrize("seed", range(30))
def test_so_it_is_with_bursts_of_lines(seed: int) -> None:
    """Many new lines that come together are kept together, until another rank has one of them."""
    rng = random.Random(seed)
    size = rng.randint(2, 5)
    said: dict[int, list[str]] = {rank: [] for rank in range(size)}
    number = 0
    for _ in range(12):
        who = rng.choice([list(range(size)), [rng.randrange(size)], [rng.randrange(size)]])
        burst = [f"line {number + i}" for i in range(rng.choice([1, 20, 150, 2500]))]
        number += len(burst)
        for rank in who:
            said[rank] += burst
    pieces = {rank: "".join(f"{line}\n" for line in lines) for rank, lines in said.items()}
    assert show_in_pieces(rng, pieces, longest=30_000) == said


def test_lines_that_came_together_are_joined_one_by_one() -> None:
    m, screen = merger(2), Screen()
    say(m, 0, "".join(f"{i}\n" for i in range(300)), 0.0)
    screen.show(m.take(1.0))
    assert screen.lines[:2] == ["[0]", "0"]
    say(m, 1, "".join(f"{i}\n" for i in range(100, 200)), 1.0)
    screen.show(m.take(1.0 + REDRAW_EVERY))
    assert [line for line in screen.lines if line.startswith("[")] == ["[0]", "[0-1]", "[0]"]
    assert screen.lines.index("[0-1]") + 1 == screen.lines.index("100")
    assert screen.lines[-1] == "299"


def show_in_pieces(
    rng: random.Random, pieces: dict[int, str], longest: int
) -> dict[int, list[str]]:
    """Let ranks say their text in pieces, in any order; return what is read of each."""
    size = len(pieces)
    m, screen, now = Merger(range(size), size, "cell"), Screen(), 0.0
    while any(pieces.values()):
        rank = rng.choice([rank for rank in pieces if pieces[rank]])
        cut = rng.randint(1, longest)
        say(m, rank, pieces[rank][:cut], now)
        pieces[rank] = pieces[rank][cut:]
        now += rng.choice([0.0, 0.01, 0.2])
        screen.show(m.take(now))
    screen.show(m.take(now, last=True))
    shown = [line for _, text in screen.pieces for line in text.splitlines()]
    return read_by_rank(shown, size)


def test_cost_is_linear_in_the_output() -> None:
    """Count the work, not the time: what goes out per character that comes in stays bounded."""
    m = merger(8)
    out = said = 0
    for step in range(500):
        for rank in range(8):
            text = "".join(f"<{rank}:{step}:{i}>\n" for i in range(20))
            said += len(text)
            say(m, rank, text, float(step))
        out += size_of(m.take(step + 0.5))
    assert said < out + size_of(m.take(999.0, last=True)) < 1.2 * said


def size_of(published: list[Publication]) -> int:
    return sum(
        len(piece.text if isinstance(piece, Text) else piece.data["text/plain"])
        for piece in published
        if not isinstance(piece, Clear)
    )
