"""Displays count in a cell's budget, and what is cut is kept in a file."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.rank.output.budget import REPLACED, SHARE

from ..pool_driver import client_of, request, running

LIMIT = 20_000
"""Characters for one rank; so it may display 200,000 bytes, and send 2,000,000."""
SHOW = """from IPython.display import clear_output, display, update_display
def show(**options):
    display({"text/html": "x" * 50_000}, raw=True, **options)
"""


async def shown(
    client: PoolClient, code: str, largest_display: int = 100_000
) -> tuple[Counter[str], str]:
    """Run code on rank 0; return how many of which outputs came, and all text."""
    kinds: Counter[str] = Counter()
    text = ""

    def on_output(_: int, kind: str, content: dict[str, str]) -> None:
        nonlocal text
        kinds[kind] += 1
        text += content["text"] if kind == "stream" else ""

    replies = await client.execute(
        SHOW + code, [0], on_output, limit=LIMIT, largest_display=largest_display
    )
    assert replies[0].status == "ok", replies
    return kinds, text


async def test_displays_are_bounded_and_the_rest_is_kept(tmp_path: Path) -> None:
    def show_and_clear(times: int) -> dict[str, int]:
        return {"clear_output": times, "display_data": times, "finished": 1}

    with_data = request(tmp_path, num_ranks=1, env={"JUPYTER_DATA_DIR": str(tmp_path)})
    async with running(with_data) as pool, client_of(pool) as client:
        kinds, text = await shown(client, "for i in range(10): show()\nprint('end')")
        assert kinds["display_data"] == SHARE * LIMIT // 50_099 == 3
        begun = re.search(r"… a display of 48.9 KiB was cut here; it is in (.+)\n", text)
        assert begun and text.index("end\n") >= begun.end()
        said = re.search(r"… 342.2 KiB of displays cut, kept in (.+)\n$", text)
        assert said and said[1] == begun[1]
        kept = [json.loads(line) for line in Path(said[1]).read_text().splitlines()]
        assert [len(one["data"]["text/html"]) for one in kept] == [50_000] * 7

        # One may be too large by itself; another one is shown.
        kinds, text = await shown(client, "show()\ndisplay(rank)", largest_display=50_000)
        assert kinds["display_data"] == 1
        assert text.startswith("… a display of 48.9 KiB was cut here; it is in ")

        # What is replaced is not shown any more; an endless plot goes on for long.
        code = "for i in range(20):\n    clear_output()\n    show()"
        assert await shown(client, code) == (Counter(show_and_clear(20)), "")
        code = "show(display_id='a')\nfor i in range(20): update_display(i, display_id='a')"
        kinds, text = await shown(client, code)
        assert (kinds["update_display_data"], text) == (20, "")
        code = "for i in range(60):\n    clear_output()\n    show()"
        kinds, text = await shown(client, code)
        assert kinds["display_data"] == REPLACED * SHARE * LIMIT // 50_099
        assert "of displays cut, kept in" in text
