"""The session of docs/agents.md goes as it is written there."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

from ..waiting import PATIENCE, wait_for
from .client import Client
from .test_mcp import use

PAGE = Path(__file__, "../../../docs/agents.md").resolve()
BLOCK = re.compile(r"^```(json|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r'"(?:id|label)": "([^"]+)"')


class Session:
    """Calls tools; the names of pools and jobs are those of this moment."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.names: dict[str, str] = {}

    def run(self, call: str) -> str:
        for written, real in self.names.items():
            call = call.replace(f'"{written}"', f'"{real}"')
        asked = json.loads(call)
        given = asked["arguments"]
        if "version" in given:
            pool = json.loads(use(self.client, "pool", pool=given["pool"]))
            given["version"] = pool["version"]
        return use(self.client, asked["name"], **given)

    def fits(self, answer: str, written: str) -> bool:
        """Tell whether an answer is as written, where `…` stands for anything."""
        parts = [re.escape(part) for part in re.split(r"\s*…\s*", NAME.sub("…", written.strip()))]
        found = re.fullmatch(".*".join(parts), answer.strip(), re.DOTALL)
        if found:
            self.names |= zip(NAME.findall(written), NAME.findall(answer), strict=False)
        return found is not None

    def until_fits(self, call: str, written: str) -> None:
        wait_for(lambda: self.fits(self.run(call), written), written)


def test_the_session_goes_as_written(client: Client) -> None:
    """A call without an answer below it goes on; its answer is below that of another call."""
    session, answers = Session(client), list[str]()
    going_on: threading.Thread | None = None
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 12
    call = ""
    for number, (kind, text) in enumerate(blocks):
        if kind == "json":
            call = text
            if blocks[number + 1][0] == "json":
                arguments = (text, answers)
                going_on = threading.Thread(
                    target=lambda call, told: told.append(session.run(call)), args=arguments
                )
                going_on.start()
        elif not call:
            assert going_on
            going_on.join(PATIENCE)
            assert session.fits(answers[0], text), answers
        elif re.search("why_stuck|triage_job", call):
            session.until_fits(call, text)
            call = ""
        else:
            answer = session.run(call)
            assert session.fits(answer, text), answer
            call = ""
