"""The command line. Nothing heavy is imported until a command needs it: `algolen --help` does without torch."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

import typer

from algolen.cli.compare import compare
from algolen.cli.doctor import doctor
from algolen.cli.encodings import encodings
from algolen.cli.evaluate import evaluate
from algolen.cli.report import report
from algolen.cli.runs import runs
from algolen.cli.sample import sample
from algolen.cli.settings import settings
from algolen.cli.show import show
from algolen.cli.study import study
from algolen.cli.tasks import tasks
from algolen.cli.train import train
from algolen.errors import UserError

app = typer.Typer(
    help="Which transformer, with which position encoding, keeps working on sequences longer than it was trained on?",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train)
app.command()(study)
app.command()(report)
app.command()(runs)
app.command()(show)
app.command("eval")(evaluate)
app.command()(compare)
app.command()(sample)
app.command()(tasks)
app.command()(encodings)
app.command()(settings)
app.command()(doctor)


CLOSED_PIPE = 128 + 13
"""As shells have it: SIGPIPE."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 fine, 1 a run failed, 2 the request was wrong, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An ASCII terminal shows ? for what it has no sign for, instead of nothing at all.
            stream.reconfigure(errors="replace")
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command; errors that are answers become one line on stderr."""
    if not arguments:
        arguments = ["--help"]
    try:
        code = app(list(arguments), prog_name="algolen", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        return _say(str(error), 2)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return CLOSED_PIPE
    except SystemExit as error:
        # What prints for us exits with 1 when its reader is gone, which here means that a run failed.
        if isinstance(error.__context__, BrokenPipeError):
            return CLOSED_PIPE
        raise
    except typer.Exit as error:
        return error.exit_code
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _full()
        if (where := _in_plugin(error)) is not None:
            return _say(f"{where}: {type(error).__name__}: {' '.join(str(error).split())}", 2)
        if not hasattr(error, "format_message"):
            raise
        message = " ".join(error.format_message().split())
        return _say(message[:1].lower() + message[1:], 2) if message else 2
    return code if isinstance(code, int) else 0


def _in_plugin(error: BaseException) -> str | None:
    """The line of a plug-in that an error passed through, if it did."""
    found = None
    frame = error.__traceback__
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).startswith("algolen_plugin_"):
            found = f"plug-in {frame.tb_frame.f_code.co_filename}, line {frame.tb_lineno}"
        frame = frame.tb_next
    return found


def _full() -> int:
    """Standard output cannot take what was to be printed; what is buffered would fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _say("cannot print: no space left on the device that standard output goes to", 1)


def _say(message: str, code: int) -> int:
    print(f"algolen: {message}", file=sys.stderr)
    return code
