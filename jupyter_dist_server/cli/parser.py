"""The parser of all commands of ``jdist``."""

from __future__ import annotations

from typing import Any

from ..jobs.submit.options import Parser


def build(commands: dict[str, tuple[Any, str]]) -> Parser:
    """Return the parser of all commands, from their functions' `add_options` and one sentence."""
    parser = Parser(prog="jdist", description="Batch jobs on the GPUs of this machine.")
    parser.add_argument("--version", action="store_true", help="print the version")
    parts = parser.add_subparsers(dest="subcommand", metavar="COMMAND", parser_class=Parser)
    for name, (add_options, sentence) in commands.items():
        part = parts.add_parser(name, help=sentence, description=sentence)
        add_options(part)
    return parser
