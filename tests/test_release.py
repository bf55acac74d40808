"""What a release says of itself, before it is built."""

from __future__ import annotations

import json
import re

import pytest

from tools.release_notes import notes

from .built_wheel import ROOT

CHANGELOG = """# Changelog

## [0.2.0] – unreleased

- New.

## [0.1.0] – 2026-12-01

### Panel

- First: [how](docs/queue.md#how), [where](https://example.org).
"""
PACKAGE = json.loads((ROOT / "package.json").read_text())
SPEAK_OF_THE_REPOSITORY = [
    "pyproject.toml",
    "RELEASE.md",
    "SECURITY.md",
    "CITATION.cff",
    ".github/ISSUE_TEMPLATE/config.yml",
]


def test_the_notes_are_the_part_of_the_changelog() -> None:
    files = "https://github.com/jupyter-dist/jupyter-dist-server/blob/v0.1.0"
    first = f"- First: [how]({files}/docs/queue.md#how), [where](https://example.org)."
    assert notes(CHANGELOG, "0.1.0") == f"### Panel\n\n{first}\n"


def test_a_version_without_a_date_or_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match=r"says that 0\.2\.0 is unreleased"):
        notes(CHANGELOG, "0.2.0")
    assert notes(CHANGELOG, "0.2.0", draft=True) == "- New.\n"
    with pytest.raises(ValueError, match="has no part"):
        notes(CHANGELOG, "0.3.0")


def test_the_changelog_has_a_part_for_this_version() -> None:
    assert "### Notebook" in notes(
        (ROOT / "CHANGELOG.md").read_text(), PACKAGE["version"], draft=True
    )


@pytest.mark.parametrize("file", SPEAK_OF_THE_REPOSITORY)
def test_all_files_name_the_same_repository(file: str) -> None:
    ours = PACKAGE["repository"]["url"].removeprefix("https://github.com/").removesuffix(".git")
    found = set(re.findall(r"jupyter-dist/[\w-]+", (ROOT / file).read_text()))
    assert found == {ours}
