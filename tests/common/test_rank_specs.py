"""How a choice of ranks is read and written."""

from __future__ import annotations

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.rank_specs import check_ranks, format_ranks, parse_ranks


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("0", [0]),
        ("[0]", [0]),
        ("[0,2]", [0, 2]),
        (" [ 0 , 2 ] ", [0, 2]),
        ("2,0,2", [0, 2]),
        ("0-2", [0, 1, 2]),
        ("[0-2]", [0, 1, 2]),
        ("1-1", [1]),
        ("0-1,3", [0, 1, 3]),
        ("-1", [3]),
        ("-4", [0]),
        (":", [0, 1, 2, 3]),
        ("::2", [0, 2]),
        ("1::2", [1, 3]),
        ("0:2", [0, 1]),
        (":-1", [0, 1, 2]),
        ("::-1", [0, 1, 2, 3]),
        ("2:100", [2, 3]),
        ("::2,3", [0, 2, 3]),
    ],
)
def test_a_choice_is_read(text: str, ranks: list[int]) -> None:
    assert parse_ranks(text, 4) == ranks


@pytest.mark.parametrize(
    "text",
    ["", "[]", "a", "0,,1", "0,a", "1.5", "2-1", "0-", "0--1", "1:2:3:4", "::0", "0 1", "x:2"],
)
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(DistError) as caught:
        parse_ranks(text, 4)
    assert (caught.value.code, caught.value.field) == ("bad_ranks", "ranks")


def test_a_slice_that_chooses_nothing_is_refused() -> None:
    with pytest.raises(DistError, match="chooses no rank"):
        parse_ranks("4:", 4)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("4", "There is no rank 4: the pool has 4 ranks (0-3)."),
        ("0,7", "There is no rank 7: the pool has 4 ranks (0-3)."),
        ("4,5", "There are no ranks 4-5: the pool has 4 ranks (0-3)."),
        ("2-5", "There is no rank 4: the pool has 4 ranks (0-3)."),
        ("7-9", "There is no rank 7: the pool has 4 ranks (0-3)."),
        ("-5", "There is no rank -5: the pool has 4 ranks (0-3)."),
    ],
)
def test_a_rank_that_is_not_there_is_named(text: str, named: str) -> None:
    with pytest.raises(DistError) as caught:
        parse_ranks(text, 4)
    assert caught.value.code == "unknown_rank"
    assert caught.value.message == named


def test_a_huge_range_is_refused_at_once() -> None:
    with pytest.raises(DistError):
        parse_ranks("0-9999999999", 4)


def test_one_rank_is_singular() -> None:
    with pytest.raises(DistError, match=r"the pool has 1 rank \(0\)"):
        check_ranks([1], 1)


def test_ranks_that_are_there_pass() -> None:
    check_ranks([], 1)
    check_ranks(range(4), 4)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], ""),
        ([0], "0"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 5], "0-2,5"),
        ([5, 0, 2, 1, 1], "0-2,5"),
        ([0, 2, 4], "0,2,4"),
        (range(8), "0-7"),
    ],
)
def test_ranks_are_written_compactly(ranks: list[int], text: str) -> None:
    assert format_ranks(ranks) == text


@pytest.mark.parametrize("ranks", [[0], [0, 3], [1, 2, 3], [0, 1, 3]])
def test_what_was_written_can_be_read(ranks: list[int]) -> None:
    assert parse_ranks(format_ranks(ranks), 4) == ranks
