"""The parser of all commands of ``jdist``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..jobs.submit.job_options import Parser


def build(sentences: Mapping[str, str], options: Mapping[str, Callable[[Any], None]]) -> Parser:
    """Return the parser of all commands.

    Parameters
    ----------
    sentences : mapping
        What each command does.
    options : mapping
        What adds options to the parser of a command; of those that are needed.
    """
    parser = Parser(prog="jdist", description="Batch jobs on the GPUs of this machine.")
    parser.add_argument("--version", action="store_true", help="print the version")
    # Without `prog`, argparse would format a usage to find it.
    parts = parser.add_subparsers(
        prog="jdist", dest="subcommand", metavar="COMMAND", parser_class=Parser
    )
    for name, sentence in sentences.items():
        part = parts.add_parser(name, help=sentence, description=sentence)
        if name in options:
            options[name](part)
    return parser
