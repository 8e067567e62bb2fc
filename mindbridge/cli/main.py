"""`mindbridge`: reads the command line and calls the command's module."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mindbridge import __version__


class _Parser(argparse.ArgumentParser):
    """A parser that refuses what it doesn't know itself, so that the usage shown is the command's own."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="mindbridge",
        description="Lets AI agents ask people in Matrix rooms and carries each answer back exactly once.",
    )
    parser.add_argument("--version", action="version", version=f"mindbridge {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    configured = argparse.ArgumentParser(add_help=False)
    configured.add_argument(
        "-c",
        "--config",
        type=Path,
        default=Path("config.yaml"),
        metavar="FILE",
        help="configuration (default: config.yaml)",
    )
    listing = argparse.ArgumentParser(add_help=False)
    listing.add_argument("--json", action="store_true", help="print JSON")

    run = commands.add_parser("run", parents=[configured], help="run the bridge until SIGTERM or Ctrl-C")
    run.add_argument(
        "--reset-identity",
        metavar="AGENT",
        help="give this agent's account a new cross-signing identity in the place of one whose keys are lost",
    )
    commands.add_parser(
        "check", parents=[configured], help="read the configuration and say everything that is wrong with it"
    )
    preview = commands.add_parser("preview", parents=[listing], help="show what a reply would become")
    preview.add_argument("source", nargs="?", default="-", metavar="FILE|-", help="the reply (default: standard input)")
    demo = commands.add_parser("demo", help="try it: a whole bridge on a throwaway homeserver on this machine")
    demo.add_argument(
        "--once", action="store_true", help="play one conversation, print it, and say whether all of it worked"
    )
    commands.add_parser(
        "doctor", parents=[configured, listing], help="look whether all that the bridge needs is there and works"
    )
    _add_journal(commands, configured, listing)
    return parser


def _add_journal(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    configured: argparse.ArgumentParser,
    listing: argparse.ArgumentParser,
) -> None:
    journal = commands.add_parser("journal", help="what happened, from the journal")
    actions = journal.add_subparsers(dest="action", required=True, metavar="ACTION")
    both = [configured, listing]
    actions.add_parser(
        "status", parents=both, help="accounts, turns, questions and deliveries in numbers, and what waits"
    )
    actions.add_parser("questions", parents=both, help="all questions, the newest first")
    show = actions.add_parser("show", parents=both, help="all about one question or turn")
    show.add_argument("id", metavar="ID", help="a question's, turn's or event's id")
    why = actions.add_parser("why", parents=both, help="what became of an event that could have been an answer")
    why.add_argument("event", metavar="EVENT", help="the event's id")
    actions.add_parser("export", parents=both, help="all questions as JSON lines, the oldest first")
    backup = actions.add_parser("backup", parents=[configured], help="write a copy of the journal")
    backup.add_argument("file", type=Path, metavar="FILE", help="where to; it must not be there yet")
    retry = actions.add_parser("retry", parents=[configured], help="run a parked turn again")
    retry.add_argument("turn", metavar="TURN", help="the turn's id")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives the exit status: 0 good, 1 failed at run time, 2 wrong usage or configuration."""
    options = _parser().parse_args(arguments)
    match options.command:
        case "run":
            from mindbridge.cli import run

            return run.run(options.config, reset_identity=options.reset_identity)
        case "check":
            from mindbridge.cli import check

            return check.run(options.config)
        case "preview":
            from mindbridge.cli import preview

            return preview.run(options.source, as_json=options.json)
        case "demo":
            from mindbridge.cli import demo

            return demo.run(once=options.once)
        case "doctor":
            from mindbridge.cli import doctor

            return doctor.run(options.config, as_json=options.json)
        case _:
            from mindbridge.cli import journal

            return journal.run(options)


if __name__ == "__main__":
    sys.exit(main())
