"""What the documentation shows works, and it leaves out no magic and no error."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from jupyter_dist_server.cli.main import options_of
from jupyter_dist_server.jobs.submit.job_options import Parser
from jupyter_dist_server.jobs.submit.submission import check_parameters, sweep
from jupyter_dist_server.notebook.register import MAGICS

from .notebook_driver import Notebook
from .server_driver import Server
from .waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, *languages: str) -> list[tuple[str, str]]:
    """Return the code blocks of a page with their languages."""
    found = FENCE.findall((ROOT / page).read_text())
    return [(language, code) for language, code in found if language in languages]


PAGES = ["README.md", "docs/magics.md", "docs/values.md", "docs/profiling.md"]


@pytest.mark.parametrize("page", PAGES)
def test_cells_of_a_page_run_in_order(page: str, new_notebook: Notebook) -> None:
    shown: list[str] = []
    for language, code in blocks(page, "python", "text"):
        if language == "python":
            shown = new_notebook.ok(code, timeout=PATIENCE).lines
        else:
            assert shown == code.splitlines()


def test_commands_of_the_rest_page_run_in_order(server: Server) -> None:
    script = "".join(code for _, code in blocks("docs/rest.md", "bash"))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=server.env | {"URL": server.url.rstrip("/"), "TOKEN": server.token},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"text/plain":"10"' in done.stdout
    assert '{"rank": 1, "status": "ok"}' in done.stdout
    assert server.pools() == []


HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(#[^)\s]+)?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings that GitHub and MkDocs write alike."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    on_github = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
    return {anchor for anchor in on_github if "--" not in anchor}


def test_links_lead_to_pages_and_headings() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for path, anchor in LINK.findall(FENCE.sub("", page.read_text())):
            there = page.parent / path if path else page
            assert there.exists(), f"{page.name}: {path}"
            if anchor:
                assert anchor[1:] in anchors(there), f"{page.name}: {path}{anchor}"


SUBMISSION = re.compile(r"jdist (submit|run) ([^\n)#]*)")
"""In a line of a shell, with a comment or inside `$(…)`."""


@pytest.mark.parametrize("page", ["README.md", "docs/queue.md"])
def test_options_of_submissions_stand_before_the_command(page: str) -> None:
    shown = [found for _, code in blocks(page, "bash") for found in SUBMISSION.findall(code)]
    assert shown
    for name, line in shown:
        parser = Parser(prog=f"jdist {name}")
        options_of(name)(parser)
        options = parser.parse_args(shlex.split(line))
        check_parameters(options.command, sweep(options.param or []))


OTHERS = {"cd", "debug", "load_ext", "magic", "pdb", "reset", "run", "tb", "time", "writefile"}
"""Magics of IPython that the page speaks of."""


def test_every_magic_is_described() -> None:
    ours = {name for ours in MAGICS for kind in ours.magics.values() for name in kind}
    described = set(re.findall(r"%(\w+)", (ROOT / "docs/magics.md").read_text()))
    assert described - OTHERS == ours


def test_every_error_is_described() -> None:
    sources = "".join(p.read_text() for p in (ROOT / "jupyter_dist_server").rglob("*.py"))
    codes = set(re.findall(r'(?:DistError\(|Reason\(|"code": )\s*"(\w+)"', sources))
    assert {"torch_missing", "no_pool", "start_timeout"} <= codes
    described = set(re.findall(r"`(\w+)`", (ROOT / "docs/troubleshooting.md").read_text()))
    assert codes <= described, codes - described
