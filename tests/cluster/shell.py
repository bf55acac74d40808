"""An IPython shell that runs the cells it is sent, one line of JSON each, and answers likewise."""

from __future__ import annotations

import json
import sys
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


def main() -> None:
    """Run cells until the input ends."""
    said = sys.stdout
    shell: Any = InteractiveShell.instance()
    for line in sys.stdin:
        with capture_output() as shown:
            result = shell.run_cell(json.loads(line))
        error = result.error_before_exec or result.error_in_exec
        displays = "".join(f"{output.data.get('text/plain')}\n" for output in shown.outputs)
        answer = {"text": shown.stdout + displays, "error": str(error) if error else None}
        print(json.dumps(answer), file=said, flush=True)


if __name__ == "__main__":
    main()
