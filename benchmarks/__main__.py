"""Command line: run (the default), install, report, profile, mock."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Final

from benchmarks import mock, profiling, report, rows, runner
from benchmarks.process import StartError
from benchmarks.subjects.base import AbsentError
from benchmarks.subjects.registry import DEFAULT, OURS, PEERS, QUICK, SUBJECTS

_COMMANDS: Final = ("run", "install", "report", "profile", "mock")
_ROUNDS: Final = 3
_QUICK_ROUNDS: Final = 2


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure and report (the default)")
    run.add_argument("--quick", action="store_true", help="under a minute: nginx and the gateway")
    run.add_argument("--peers", action="store_true", help="the other gateways, too")
    run.add_argument("--subjects", type=_names, help=f"of {', '.join(SUBJECTS)}")
    run.add_argument("--only", type=_names, help=f"of {', '.join(s.key for s in rows.STEPS)}")
    run.add_argument("--rounds", type=int, default=0)
    run.add_argument("--profile", action="store_true", help="sample the gateway instead")
    run.add_argument("--update-readme", action="store_true")
    run.add_argument("--no-save", action="store_true", help="leave results/ as it is")
    run.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    install = commands.add_parser("install", help="install the other gateways")
    install.add_argument("names", nargs="*", default=list(PEERS))
    shown = commands.add_parser("report", help="show the last run again")
    shown.add_argument("--update-readme", action="store_true")
    sampled = commands.add_parser("profile", help="top functions of the gateway by own time")
    sampled.add_argument("--row", default="plain", help="which row to serve meanwhile")
    sampled.add_argument("--top", type=int, default=10)
    commands.add_parser("mock", help="serve the mock upstream alone", add_help=False)
    return parser


def _run(given: argparse.Namespace) -> int:
    names: list[str] = given.subjects or list(QUICK if given.quick else DEFAULT)
    names += [name for name in PEERS if given.peers and name not in names]
    steps = rows.chosen_steps(given.only, quick=given.quick)
    unknown = [name for name in names if name not in SUBJECTS]
    if unknown or not steps:
        print(f"unknown: {', '.join(unknown) or ','.join(given.only)}", file=sys.stderr)
        return 2
    rounds = given.rounds or (_QUICK_ROUNDS if given.quick else _ROUNDS)
    kept = runner.run([SUBJECTS[name] for name in names], steps, rounds)
    print("\n" + report.show(kept))
    whole = not given.quick and not given.only and not given.subjects
    if whole and not given.no_save:
        report.save(kept)
    if given.update_readme:
        report.update_readme(kept)
    missed = given.strict and (bool(report.missed(kept)) or OURS not in kept.subjects)
    return 1 if missed else 0


def _profile(row: str, top: int) -> int:
    print(f"own time of the gateway in the row {row}:")
    for name, share in profiling.profile(SUBJECTS[OURS], row, top):
        print(f"  {share:6.1%}  {name}")
    return 0


def _install(names: list[str]) -> int:
    failed = 0
    for name in names:
        print(f"{name}:", flush=True)
        try:
            SUBJECTS[name].install()
        except AbsentError as error:
            print(f"  {error}")
            failed += 1
    # A run leaves out what is missing, so one that cannot be had stops nothing.
    return 1 if failed == len(names) else 0


def _report(*, update: bool) -> int:
    kept = report.load()
    print(report.show(kept))
    if update:
        report.update_readme(kept)
    return 0


def _command(arguments: list[str]) -> int:
    given = _parser().parse_args(arguments)
    if given.command == "install":
        return _install(given.names)
    if given.command == "report":
        return _report(update=given.update_readme)
    if given.command == "profile":
        return _profile(given.row, given.top)
    return _profile("plain", 10) if given.profile else _run(given)


def _stop(number: int, frame: object) -> None:
    # An exception, so that every finally ends what it started.
    sys.exit(128 + number)


def main(arguments: list[str]) -> int:
    """Run one command."""
    if not arguments or arguments[0] not in {*_COMMANDS, "-h", "--help"}:
        arguments = ["run", *arguments]
    if arguments[0] == "mock":
        return mock.main(arguments[1:])
    signal.signal(signal.SIGTERM, _stop)
    try:
        return _command(arguments)
    except (AbsentError, StartError, profiling.ProfileError, report.ReadmeError) as error:
        print(error, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
