"""What is said of two profiles, and what fails."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from jupyter_dist_server.cli.main import main
from jupyter_dist_server.common.protocol.ranks.profile_messages import RankProfile
from jupyter_dist_server.verdicts.slow.compare_profiles import compare


def profile(steps: list[float], **parts: float) -> RankProfile:
    """Return the profile of one rank; parts in seconds of all steps."""
    durations = {"begin": 0.0, "end": sum(steps), "steps": len(steps), "durations": steps}
    return RankProfile(status="ok", **durations | {"compute": 0.09 * len(steps)} | parts)


STEADY = [0.099, 0.101] * 5
SLOWER = [step + 0.012 for step in STEADY]


def test_a_slower_step_names_the_part() -> None:
    found = compare({0: profile(STEADY, input=0.1)}, {0: profile(SLOWER, input=0.22)})
    assert found.text == (
        "A step takes 112 ms, 12 % more than before (100 ms; steps vary by 1 %): input 12 ms more."
    )
    assert found.fails(0.05) and not found.fails(0.15)
    back = compare({0: profile(SLOWER, input=0.22)}, {0: profile(STEADY, input=0.1)})
    assert back.text.startswith("A step takes 100 ms, 11 % less than before")
    assert back.text.endswith(": input 12 ms less.") and not back.fails(0.0)


def test_noise_is_no_difference() -> None:
    noisy, other = [0.05, 0.15] * 5, [0.06, 0.15] * 5
    found = compare({0: profile(noisy)}, {0: profile(other)})
    assert found.text == "A step takes 105 ms, as before (100 ms; steps vary by 45 %)."
    assert not found.fails(0.01)


def test_a_few_steps_tell_no_noise() -> None:
    found = compare({0: profile([0.1])}, {0: profile([0.2])})
    assert "with so few steps, it is not known how much they vary" in found.text
    assert found.fails(0.05)


def write(path: Path, content: object) -> str:
    path.write_bytes(gzip.compress(msgspec.json.encode(content)))
    return str(path)


def test_files_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (
        write(tmp_path / f"{name}.json.gz", {"jupyterDistProfiles": {0: profile(steps)}})
        for name, steps in (("before", STEADY), ("after", SLOWER))
    )
    assert main(["profile", "compare", before, after]) == 0
    assert capsys.readouterr().out.startswith("A step takes 112 ms, 12 % more than before")
    assert main(["profile", "compare", before, after, "--fail-if-slower", "5%"]) == 1
    assert main(["profile", "compare", before, after, "--fail-if-slower", "20"]) == 0
    assert main(["profile", "compare", after, before, "--fail-if-slower", "5%"]) == 0


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"{}"), gzip.compress(b"[1]"), None],
    ids=["no gzip", "no trace", "a list", "no file"],  # gzip writes the time
)
def test_what_is_no_profile_is_refused(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "profile.json.gz"
    if content is not None:
        file.write_bytes(content)
    assert main(["profile", "compare", str(file), str(file)]) == 2
    said = capsys.readouterr().err
    assert "profile.json.gz" in said and ("cannot be read" in said or "has no profile" in said)


def test_profiles_on_different_numbers_of_ranks_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (
        write(
            tmp_path / f"{ranks}.json.gz",
            {"jupyterDistProfiles": {rank: profile(steps, **parts) for rank in range(ranks)}},
        )
        for ranks, steps, parts in (
            (1, [0.1] * 10, {}),
            (2, [0.08] * 10, {"compute": 0.45, "input": 0.3}),
        )
    )
    assert main(["profile", "scaling", two, one]) == 0
    first, head, *rows = capsys.readouterr().out.splitlines()
    assert first == (
        "2 ranks are 1.2 times as fast as 1 rank: efficiency 62 %. Most of the loss is input: "
        "30 ms of a step."
    )
    assert head.split()[:4] == ["ranks", "time", "speed-up", "efficiency"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert main(["profile", "scaling", "--weak", one, two]) == 0
    assert "2 ranks do 2.5 times as much" in capsys.readouterr().out
    assert main(["profile", "scaling", "--json", one, two]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["ranks"] for run in told["runs"]] == [1, 2]
    assert main(["profile", "compare", "--json", one, one]) == 0
    assert json.loads(capsys.readouterr().out)["slower"] == 0
    assert main(["profile", "scaling", one, one]) == 2
    assert "on different numbers of ranks" in capsys.readouterr().err
    assert main(["profile", "compare", one]) == 2
    assert "Name two profiles" in capsys.readouterr().err


def test_a_percentage_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "compare", "a", "b", "--fail-if-slower", "x"]) == 2
    assert "x is no percentage" in capsys.readouterr().err


def test_traces_of_others_have_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"traceEvents": []}).encode()))
    assert main(["profile", "compare", str(file), str(file)]) == 2
    assert "has no profile in it" in capsys.readouterr().err
