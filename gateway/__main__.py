"""The command line: parses arguments, calls the rooms, turns failures into exit codes.

0: fine, 1: the user's mistake, 2: usage, 3: a dependency is down.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.version import VERSION

_LAST_STANDARD_FILE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _open_standard_files()
    options = _parser().parse_args(arguments)
    from gateway.cli import commands  # `--help` needs none of it

    return commands.run(options)


def _open_standard_files() -> None:
    """Open those of the three standard files that are closed: else a socket could take the place of the log."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= _LAST_STANDARD_FILE:
        os.set_inheritable(fd, True)
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway", description="An LLM gateway.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"gateway {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="answer requests", allow_abbrev=False))
    check = commands.add_parser("check", help="report every mistake of a configuration")
    check.add_argument("path", type=Path, help="a YAML file or a folder of them")
    check.add_argument(
        "--live",
        action="store_true",
        help="call each configured provider once, with a few tokens, and say what failed",
    )
    explain = commands.add_parser("explain", help="print what a configuration does; calls nothing")
    explain.add_argument("path", type=Path, nargs="?", help="default: the built-in configuration")
    explain.add_argument("--tenant", help="only this tenant")
    explain.add_argument("--model", help="only this model")
    explain.add_argument("--json", action="store_true", help="for programs")
    _add_keys(commands.add_parser("keys", help="make, hash, list and revoke keys"))
    _add_conform(
        commands.add_parser(
            "conform", help="ask a running gateway to show that it speaks its formats"
        )
    )
    _add_cache(
        commands.add_parser(
            "cache", help="show, explain and forget kept answers of a running gateway"
        )
    )
    commands.add_parser("version", help="print the version")
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, help="a YAML file or a folder of them")
    parser.add_argument("--host", help="address that clients connect to")
    parser.add_argument("--port", type=int, help="port that clients connect to; 0 takes a free one")
    parser.add_argument(
        "--discover",
        action="store_true",
        help="without --config: ask the usual loopback ports of Ollama, LM Studio, llama.cpp, vLLM and "
        "SGLang, and take in what answers",
    )
    parser.add_argument("--seat", help=argparse.SUPPRESS)


def _add_conform(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--against", required=True, metavar="URL", help="where the gateway answers")
    parser.add_argument("--key", help="a key that it takes; default: $GATEWAY_KEY")
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME[=CALLER,...]",
        help="a model, and the formats to ask it in: chat, messages, responses; default: the first that is listed",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def _add_cache(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    stats = actions.add_parser("stats", help="count what is kept for a tenant")
    explain = actions.add_parser(
        "explain", help="look a question up, and print what each tier says"
    )
    explain.add_argument(
        "question",
        nargs="?",
        help="a question; without it a request's body is read from standard input",
    )
    explain.add_argument("--model", default="", help="the model that is asked")
    explain.add_argument("--session", help="the session that asks")
    explain.add_argument("--path", default="/v1/chat/completions", help="where it would be sent")
    explain.add_argument("--json", action="store_true", help="for programs")
    purge = actions.add_parser("purge", help="forget what fits, at once and for good")
    for name in ("id", "session", "namespace", "tag", "model", "agent"):
        purge.add_argument(f"--{name}", default="")
    purge.add_argument("--everything", action="store_true", help="all that is kept for the tenant")
    for action in (stats, explain, purge):
        action.add_argument("--tenant", default="default")
        action.add_argument("--config", type=Path, help="where the admin listener is configured")
        action.add_argument("--admin", metavar="URL", help="where it answers, if that is elsewhere")


def _add_keys(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("new", help="make a key and print it once")
    new.add_argument("--tenant", default="default")
    new.add_argument("--id", help="its name in logs and lists; default: a date and a number")
    new.add_argument(
        "--models", help="models it may call, with commas between; default: the tenant's"
    )
    new.add_argument("--expires", help="a day or a time, such as 2027-01-31")
    actions.add_parser("hash", help="read a key from standard input, print its hash")
    listing = actions.add_parser("list", help="list the keys of the key store")
    listing.add_argument("--tenant")
    revoke = actions.add_parser("revoke", help="make a key worthless, everywhere, within seconds")
    revoke.add_argument("id")
    revoke.add_argument("--tenant", default="default")
    for action in (new, listing, revoke):
        action.add_argument("--config", type=Path, help="where the key store is configured")


if __name__ == "__main__":
    sys.exit(main())
