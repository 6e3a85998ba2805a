"""The `fairtrial` command: a table of commands, each imported only when it is called.

Exit codes: 0 success, 1 a bug in fairtrial, 2 bad input, 3 unusable ledger, 4 the environment
failed, 5 some runs failed, an audit did, or an attack won, 6 a budget ended the study, 7 a gate
failed, 8 repeated failures paused the study, 130 interrupted.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click

from fairtrial import __version__
from fairtrial.core import FairtrialError, LabError, StudyError

SECTIONS = {
    "Studies": {
        "init": ("fairtrial.cli.init:command", "Write a commented starter study."),
        "check": ("fairtrial.cli.check:command", "Find every mistake in a study or problem file."),
        "plan": ("fairtrial.cli.plan:command", "Show a study's conditions, runs, tests and power."),
        "lock": ("fairtrial.cli.lock:command", "Lock a study before it is run."),
        "run": ("fairtrial.cli.run:run", "Run a study."),
        "resume": ("fairtrial.cli.run:resume", "Resume a study that was stopped."),
        "retry": ("fairtrial.cli.run:retry", "Repeat runs that broke or failed."),
        "status": ("fairtrial.cli.status:command", "Show the progress of a study."),
        "list": ("fairtrial.cli.list:command", "List studies: state, progress, cost, verdicts."),
        "pause": ("fairtrial.cli.control:pause", "Pause a running study."),
        "cancel": ("fairtrial.cli.control:cancel", "Stop a running study; finished runs are kept."),
    },
    "Results of studies": {
        "show": ("fairtrial.cli.show:command", "List runs, or show one, or candidates."),
        "view": ("fairtrial.cli.view:command", "Show studies in the browser while they run."),
        "report": ("fairtrial.cli.report:command", "Test the hypotheses and write the report."),
        "compare-studies": (
            "fairtrial.cli.compare_studies:command",
            "Compare two studies, and say what else differs.",
        ),
        "export": ("fairtrial.cli.export:command", "Write tables again, or for other tools."),
        "rescore": (
            "fairtrial.cli.rescore:command",
            "Score stored outputs with another evaluator.",
        ),
        "bundle": ("fairtrial.cli.bundle:command", "Pack a study's results, or verify a bundle."),
        "import-checkpoints": (
            "fairtrial.cli.import_checkpoints:command",
            "Take over results of design-research-experiments.",
        ),
    },
    "Code": {
        "optimize": (
            "fairtrial.cli.optimize:command",
            "Search for faster code and confirm the winner.",
        ),
        "hotspots": ("fairtrial.cli.hotspots:command", "Rank a project's functions by their time."),
        "evaluate": ("fairtrial.cli.evaluate:command", "Judge code candidates against their base."),
        "compare": (
            "fairtrial.cli.compare:command",
            "Time versions or commands against each other.",
        ),
        "audit": (
            "fairtrial.cli.audit:command",
            "Test whether a problem's checks reject wrong code.",
        ),
        "attack": (
            "fairtrial.cli.attack:command",
            "Try known cheats on a problem: which would win?",
        ),
        "aa": ("fairtrial.cli.aa:command", "Time the base against itself: detectable effects."),
    },
    "Machine and tools": {
        "doctor": ("fairtrial.cli.doctor:command", "Show what this machine can enforce and time."),
        "clean": ("fairtrial.cli.clean:command", "Show and remove what killed runs left on disk."),
        "doe": ("fairtrial.cli.doe:command", "Generate a design table without a study."),
        "schema": ("fairtrial.cli.schema:command", "Print the JSON Schema of study files."),
    },
}
"""The commands by section: module and name of each, and its summary."""
COMMANDS = {name: entry for commands in SECTIONS.values() for name, entry in commands.items()}


GRACE_S = 2.0
INTERRUPTED = 130
SHOWN_MISTAKES = 100
"""How many mistakes are printed; `--json` prints all of them."""


class OutputClosedError(Exception):
    """The program that reads the output (head, less) has ended, which is no error."""


class CommandTable(click.Group):
    """A command group that lists its commands without importing them, so that --help is fast."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputClosedError from None  # click would make it exit code 1

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from fairtrial.core import did_you_mean

            ctx.fail(f"there is no command '{args[0]}'; {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                rows = [(name.ljust(width), summary) for name, (_, summary) in commands.items()]
                formatter.write_dl(rows)


@click.group(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fairtrial")
@click.option("--verbose", is_flag=True, help="Show what happens on standard error, run by run.")
def cli(verbose: bool) -> None:
    """Every candidate gets a fair trial: designed studies of agents, prompts, models and patches.

    Studies: `fairtrial init`, then `fairtrial plan study.yaml` and `fairtrial run study.yaml`.
    Faster code: `fairtrial optimize src/shop/cart.py::total`.
    """
    if verbose:
        _show_log()


def _show_log() -> None:
    """Write the log to standard error."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("fairtrial")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.DEBUG)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, print any error as a message, and exit with its exit code.

    arguments: the command line without the program's name; by default that of this process
    """
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    _prepare_output()
    try:
        code = _run(command_line)
    except OSError:
        code = 2  # the error message could not be written either
    except KeyboardInterrupt:  # a second one, while the first was being reported
        code = INTERRUPTED
    if arguments is None:
        _ignore_interrupts()
        _limit_thread_wait(code)
    sys.exit(code)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C from here on: it could only interrupt the exit, with a traceback."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _limit_thread_wait(code: int) -> None:
    """Exit after `GRACE_S` even if threads that agents started are still running."""
    remaining = [thread for thread in threading.enumerate() if not thread.daemon]
    if remaining == [threading.main_thread()]:
        return

    def exit_now() -> None:
        if code != INTERRUPTED:  # after an interrupt it is expected
            threads = "1 thread" if len(remaining) == 2 else f"{len(remaining) - 1} threads"
            click.echo(f"not waiting for {threads} still running", err=True)
        os._exit(code)

    timer = threading.Timer(GRACE_S, exit_now)
    timer.daemon = True  # so that it doesn't delay the exit if they end
    timer.start()


def _prepare_output() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for what a terminal can't show


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        result = cli.main(arguments, prog_name="fairtrial", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        if as_json:
            _print_json_error(error.format_message(), [])
        else:
            error.show()
        return error.exit_code
    except FairtrialError as error:
        _report(error, as_json)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as stop:
        message = str(stop) or str(stop.__cause__ or "")  # click's Abort has no message
        click.echo(_wrap("; ".join(filter(None, ["interrupted", message]))), err=True)
        return INTERRUPTED
    except (OutputClosedError, BrokenPipeError):
        _drop_output()
        return 0
    except OSError as error:
        return _report_os_error(error, as_json)
    except MemoryError:
        pass  # reported below, after the exception and what it refers to are freed
    except Exception:
        return _report_bug()
    else:
        return result if isinstance(result, int) else 0
    _report(StudyError("this takes more memory than there is; ask for fewer rows"), as_json)
    return 2


def _wrap(text: str) -> str:
    from fairtrial.cli.output import fold

    return fold(text, "", "  ") if sys.stderr.isatty() else text


def _report_os_error(error: OSError, as_json: bool) -> int:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        advice = "allow more (ulimit -n), or do less at once"
        _report(LabError(f"too many files are open at once: {advice}"), as_json)
        return LabError.exit_code
    if error.filename is not None:
        reason = error.strerror or str(error)
        _report(StudyError(reason, source=str(error.filename)), as_json)
    elif error.errno == errno.ENOENT:  # without a file name it is the current directory
        _report(StudyError("this directory is no longer there: change to another one"), as_json)
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        _drop_output()
        click.echo(f"error: the output can't be written: {error.strerror}", err=True)
    else:
        return _report_bug()
    return 2


def _drop_output() -> None:
    """Redirect standard output to nothing, so that flushing it at exit doesn't fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: FairtrialError, as_json: bool) -> None:
    mistakes = getattr(error, "mistakes", ())
    if as_json:
        details = [
            {
                "file": getattr(error, "source", "") or None,
                "line": mistake.line,
                "field": mistake.field or None,
                "message": mistake.message,
                "hint": mistake.hint or None,
            }
            for mistake in mistakes
        ]
        _print_json_error(str(error), details)
        return
    from fairtrial.cli.output import labeled

    for line in str(error).splitlines()[:SHOWN_MISTAKES]:
        click.echo(labeled("error", line, "red"), err=True)
    if len(mistakes) > 1:
        shown = f"; the first {SHOWN_MISTAKES} are shown" if len(mistakes) > SHOWN_MISTAKES else ""
        click.echo(f"{len(mistakes):,} mistakes{shown}", err=True)


def _print_json_error(message: str, mistakes: list[dict[str, object]]) -> None:
    import json

    click.echo(json.dumps({"ok": False, "error": message, "mistakes": mistakes}, indent=2))


def _report_bug() -> int:
    """Print the traceback with a request to report it; returns the exit code."""
    import traceback

    traceback.print_exc()
    click.echo(
        f"\nThis is a bug in fairtrial ({__version__}), not in your input. Please report it with "
        "the lines above and the command that you ran.",
        err=True,
    )
    return 1
