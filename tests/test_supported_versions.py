"""The versions that pyproject.toml allows are those that CI tests."""

from __future__ import annotations

import re
import sys

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from .built_wheel import CONSTRAINTS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
UNLIMITED = {"pygments"}
"""All that we use of it is older than any release that pip installs."""


def requirements() -> list[Requirement]:
    """Return what users install, with what they may want beside it."""
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *extras["torch"][:1], *extras["ray"]]
    lab = [text for text in extras["test"] if text.startswith("jupyterlab")]
    return [Requirement(text) for text in texts + lab]


def pinned(name: str) -> list[Version]:
    """Return the versions of a package that the older environments, or `make ray-test`, have."""
    files = [ROOT / f"constraints-{which}.txt" for which in ("oldest", "colab")] + [
        ROOT / "Makefile"
    ]
    spelled = re.escape(name).replace("_", "[-_]").replace(r"\-", "[-_]")
    pattern = rf'(?im)(?:^|"){spelled}==([\d.]+\d)'
    return [Version(v) for file in files for v in re.findall(pattern, file.read_text())]


@pytest.mark.parametrize("wanted", requirements(), ids=lambda wanted: wanted.name)
def test_the_oldest_release_is_tested(wanted: Requirement) -> None:
    lowest = [Version(one.version) for one in wanted.specifier if one.operator == ">="]
    if wanted.name in UNLIMITED:
        assert not lowest
        return
    (least,) = lowest
    tested = min(pinned(wanted.name))
    assert tested.release[: len(least.release)] == least.release


def test_each_python_that_we_name_is_tested() -> None:
    jobs = WORKFLOW["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    tested = {str(step.get("with", {}).get("python-version")) for step in steps}
    tested |= {row["python"] for row in jobs["versions"]["strategy"]["matrix"]["include"]}
    start = "Programming Language :: Python :: 3."
    named = {
        text.removeprefix("Programming Language :: Python :: ")
        for text in PROJECT["classifiers"]
        if text.startswith(start)
    }
    assert named == {version for version in tested if version.startswith("3.")}
    assert PROJECT["requires-python"] == f">={min(named, key=Version)}"


def test_the_newest_releases_are_tested_each_week_in_python_and_in_a_browser() -> None:
    rows = WORKFLOW["jobs"]["versions"]["strategy"]["matrix"]["include"]
    newest = {row["command"].split()[1] for row in rows if "/dev/null" in row["command"]}
    assert newest == {"py-test", "ui-test"}
    assert WORKFLOW[True]["schedule"]  # YAML takes "on" for true


def test_the_pinned_releases_are_allowed() -> None:
    for wanted in requirements():
        name = wanted.name.lower()
        found = re.findall(rf"(?im)^{name.replace('_', '[-_]')}==([\w.]+)", CONSTRAINTS.read_text())
        assert all(wanted.specifier.contains(version) for version in found), wanted
