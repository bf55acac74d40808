"""The notes of a release: what CHANGELOG.md says of the version in package.json."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = json.loads((ROOT / "package.json").read_text())


def notes(changelog: str, version: str, draft: bool = False) -> str:
    """Return the part of a changelog that is about a version.

    Parameters
    ----------
    changelog : str
    version : str
    draft : bool
        Whether the version may still be without a date.

    Raises
    ------
    ValueError
        If the changelog has nothing of this version, or it is not dated.
    """
    parts = re.split(r"(?m)^## \[(.+?)\] – (.+)\n", changelog)
    for name, date, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if name != version:
            continue
        if not draft and not re.fullmatch(r"\d{4}-\d\d-\d\d", date.strip()):
            raise ValueError(f"CHANGELOG.md says that {version} is {date.strip()}: write its date.")
        # A release's page on GitHub is in no folder of the repository, so that its links are whole.
        files = f"{PACKAGE['repository']['url'].removesuffix('.git')}/blob/v{version}/"
        return re.sub(r"\]\((?![a-z]+:|#)", f"]({files}", text.strip()) + "\n"
    raise ValueError(f"CHANGELOG.md has no part '## [{version}] – DATE'.")


def main() -> int:
    """Print the notes, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draft", action="store_true", help="do not ask for a date")
    options = parser.parse_args()
    try:
        text = (ROOT / "CHANGELOG.md").read_text()
        print(notes(text, PACKAGE["version"], options.draft), end="")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
