"""What the documentation shows works, and it leaves out no magic and no error."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from jupyter_dist_server.cli.main import options_of
from jupyter_dist_server.jobs.submit.job_options import Parser
from jupyter_dist_server.jobs.submit.submission import check_parameters, sweep
from jupyter_dist_server.notebook.magics.cell_magics import CellMagics
from jupyter_dist_server.notebook.register import MAGICS
from jupyter_dist_server.server.extension import JupyterDistApp
from tools import rest_page

from .notebook_driver import Notebook
from .result import Result
from .server_driver import Server
from .waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, *languages: str) -> list[tuple[str, str]]:
    """Return the code blocks of a page with their languages."""
    found = FENCE.findall((ROOT / page).read_text())
    return [(language, code) for language, code in found if language in languages]


DOCS = ROOT / "docs"
PAGES = [
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    if "```python\n" in page.read_text() and page.stem != "jupyterhub"  # has a hub's configuration
]
"""Pages with cells, which go on from one another."""
WRITTEN_BY_PROGRAMS = {"cli", "hang-messages", "rest-reference"}


WAIT = re.compile("^> (Rank 0 waits .*)$", re.MULTILINE)
"""What a page says that the output of its cells says."""


@pytest.mark.parametrize("page", PAGES)
def test_cells_of_a_page_run_in_order(page: str, new_notebook: Notebook) -> None:
    shown = Result()
    messages = ""
    for language, code in blocks(page, "python", "text"):
        if language == "python":
            shown = new_notebook.ok(code, timeout=PATIENCE)
            messages += str(shown.messages)
        else:
            written = Result(outputs=[{"type": "stream", "name": "stdout", "text": code}])
            # Lines of ranks are joined as they come, which on a busy machine is another order.
            assert shown.lines_by_rank == written.lines_by_rank
            if not written.lines_by_rank:
                assert shown.lines == written.lines
    for sentence in WAIT.findall((ROOT / page).read_text()):
        assert sentence in messages


def test_pages_are_short() -> None:
    for page in DOCS.glob("*.md"):
        words = [word for word in page.read_text().split() if re.search(r"\w", word)]
        assert len(words) <= 1500 or page.stem in WRITTEN_BY_PROGRAMS, page.name


def test_every_page_is_in_the_navigation() -> None:
    named = re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(named) == sorted(page.name for page in DOCS.glob("*.md"))


def test_commands_of_the_rest_pages_run_in_order(server: Server) -> None:
    pages = ("docs/rest.md", "docs/rest-jobs.md")
    script = "".join(code for page in pages for _, code in blocks(page, "bash"))
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
PICTURE = re.compile(r'src(?:set)?="([^"]+)"()')
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(#[^)\s]+)?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings that GitHub and MkDocs write alike."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    on_github = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
    return {anchor for anchor in on_github if "--" not in anchor}


def test_links_lead_to_pages_and_headings() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.glob("*.md")]:
        text = FENCE.sub("", page.read_text())
        for path, anchor in LINK.findall(text) + PICTURE.findall(text):
            there = page.parent / path if path else page
            assert there.exists(), f"{page.name}: {path}"
            if anchor:
                assert anchor[1:] in anchors(there), f"{page.name}: {path}{anchor}"


SUBMISSION = re.compile(r"jdist (submit|run) ([^\n)#]*)")
"""In a line of a shell, with a comment or inside `$(…)`."""


@pytest.mark.parametrize(
    "page", ["README.md", "docs/queue.md", "docs/job-scripts.md", "docs/manage-jobs.md"]
)
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
    index = (DOCS / "magics.md").read_text()
    assert set(re.findall(r"%(\w+)", index)) - OTHERS == ours


def test_every_error_is_described() -> None:
    sources = "".join(p.read_text() for p in (ROOT / "jupyter_dist_server").rglob("*.py"))
    codes = set(re.findall(r'(?:DistError\(|Reason\(|"code": )\s*"(\w+)"', sources))
    assert {"torch_missing", "no_pool", "start_timeout"} <= codes
    pages = ("errors", "errors-start", "errors-run")
    described = set(re.findall(r"`(\w+)`", "".join((DOCS / f"{p}.md").read_text() for p in pages)))
    assert codes <= described, codes - described


def test_every_setting_is_described() -> None:
    settings = {
        f"{kind.__name__}.{name}"
        for kind in (JupyterDistApp, CellMagics)
        for name in kind.class_own_traits(config=True)
    }
    page = (DOCS / "settings.md").read_text()
    assert set(re.findall(r"^\| `(\w+\.\w+)`", page, re.MULTILINE)) == settings
    schema = json.loads((ROOT / "schema/plugin.json").read_text())
    titles = {one["title"] for one in schema["properties"].values()}
    assert set(re.findall(r"^\| \*(.+?)\*", page, re.MULTILINE)) == titles


def test_the_page_of_routes_is_written_from_openapi() -> None:
    assert rest_page.PAGE.read_text() == rest_page.page(), "run python -m tools.rest_page"
