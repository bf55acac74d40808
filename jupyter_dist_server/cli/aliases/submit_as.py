"""``gbatch`` and ``sbatch``: the options of both are known from scripts."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence

from ...common.package_version import version
from ...jobs.store.store import Store
from ...jobs.submit.job_options import Parser
from ...jobs.submit.script_directives import Directive, our_options
from ..main import options_of
from ..submit import run_submit
from .foreign_options import notice, read_options, run_jdist

_ANSWERS = {"--parsable", "--json", "--dry-run", "--test-only", "--wrap"}
_WAIT = {"-W", "--wait"}


def submit_as(
    program: str,
    kind: str,
    flags: str,
    words: Sequence[str],
    store: Store,
    *,
    ours: Sequence[str] = (),
    files: str = "jdist",
) -> int:
    """Queue what a program's command line asks for, and answer as it does.

    Parameters
    ----------
    program, kind : str
        The program, and what its directives begin with.
    flags : str
        Its options without a value.
    words : sequence of str
        Its command line.
    store : Store
        Where the jobs go.
    ours : sequence of str
        Further options of ``jdist submit``.
    files : str
        What names of outputs begin with if nobody chooses one.
    """
    parser = Parser(prog=program)
    options_of("submit")(parser)
    own = [name for one in parser._actions if one.nargs == 0 for name in one.option_strings]
    found, rest = read_options(program, f"{flags} {' '.join(own)}", words, is_submitting=True)
    if any(one.name in ("-h", "--help", "--usage") for one in found):
        return run_jdist("submit", ["-h"], store)
    if any(one.name in ("-V", "--version") for one in found):
        print(version())
        return 0
    answers, asked, is_waiting = [], [], False
    for one in found:
        values = [] if one.value is None else [one.value]
        if one.name in _ANSWERS:
            answers += [one.name.replace("--test-only", "--dry-run"), *values]
        elif kind == "SBATCH" and one.name in _WAIT:
            is_waiting = True
        else:
            asked.append(Directive(program, kind, one.name, values))
    notices: list[str] = []
    given = our_options(asked, notices)
    for text in notices:
        notice(text.replace(f"#{kind}", program, 1))
    if len(rest) == 1 and " " in rest[0] and not os.path.exists(rest[0]):
        answers, rest = [*answers, "--wrap", rest[0]], []  # gflow has a shell read it, too
    options = parser.parse_args([*ours, *given, *answers, *rest])
    options.is_batch, options.files = True, files
    if not is_waiting or options.dry_run:
        return run_submit(options, store)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = run_submit(options, store)
    print(answer := said.getvalue().strip(), flush=True)
    return code or run_jdist("wait", [answer.split()[-1]], store)
