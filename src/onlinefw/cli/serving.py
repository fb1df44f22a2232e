"""``ofw serve`` and ``ofw replay``: their options and help texts."""

from __future__ import annotations

import os
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .._words import printable
from .json_text import as_json_text
from .refuse import one_line_errors, refuse

__all__ = ["replay", "serve"]

NEEDED = "pip install 'onlinefw[serve]'"


class NewKind(StrEnum):
    """What ``ofw serve --new`` begins."""

    matrix = "matrix"
    clicks = "clicks"
    regression = "regression"
    classification = "classification"


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the model, such as half_life=5000; may be repeated."),
]


def serve(
    model: Annotated[
        Path | None,
        typer.Argument(help="A checkpoint to go on from, or a model file, which only predicts."),
    ] = None,
    new: Annotated[NewKind | None, typer.Option(help="Begin an empty model of this kind.")] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="Where events are kept; an existing log goes on where it ended."),
    ] = None,
    follow: Annotated[
        Path | None,
        typer.Option(help="Answer from the log of another ofw serve, without writing to it."),
    ] = None,
    settings: Settings = None,
    classes: Annotated[
        str | None, typer.Option(help="All labels of --new classification, such as ham,spam.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to answer at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free port.")] = 8080,
    token: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token that requests must send; or set ONLINEFW_TOKEN to it."
        ),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, help="Events between two checkpoints, which lie beside the log.")
    ] = 100_000,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove from the log what a checkpoint has; event ids stay."),
    ] = False,
    max_body: Annotated[int, typer.Option(min=1024, help="Bytes a request may have.")] = 2**20,
    max_batch: Annotated[int, typer.Option(min=1, help="Events a request may have.")] = 10_000,
    max_queue: Annotated[int, typer.Option(min=1, help="Events that may wait.")] = 50_000,
) -> None:
    """Learn and answer over HTTP; acknowledged events are never lost.

    Events come to POST /learn and are on the disk, in the log, when the answer comes. Stopped in
    whatever way, the same command goes on. GET /openapi.json describes the endpoints.
    """
    with one_line_errors("serve"):
        secret = _token(token)
        try:
            from ..serve.bodies import Limits
            from ..serve.opening import ServeOptions, open_engine
            from ..serve.server import bound
            from ..serve.server import serve as answer
        except ModuleNotFoundError as error:
            _say_what_is_missing("serve", error)
        options = ServeOptions(
            model,
            None if new is None else new.value,
            log,
            follow,
            settings or [],
            None if classes is None else [one.strip() for one in classes.split(",")],
            checkpoint_every,
            max_queue,
            prune,
        )
        with ExitStack() as held:
            listening = held.enter_context(bound(host, port))
            engine = open_engine(options, _say, held)
            if secret is None and host not in ("127.0.0.1", "::1", "localhost"):
                _say("anybody who reaches this machine may ask and teach: set a --token")
            answer(engine, listening, secret, Limits(max_body, max_batch), _say)


def replay(
    log: Annotated[Path, typer.Argument(help="A log that ofw serve has written.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Where to write the model: .ofw only predicts, else a checkpoint."
        ),
    ] = None,
    settings: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Learn all events of a log anew, and print the model's digest.

    It is the digest that GET /model gives. With --set it is a backtest: how well a model with
    other settings would have predicted the same events.
    """
    with one_line_errors("replay"):
        try:
            from ..serve.replaying import replayed
        except ModuleNotFoundError as error:
            _say_what_is_missing("replay", error)
        found = replayed(log, settings or [], out)
    if as_json:
        typer.echo(as_json_text(found))
        return
    for name, value in found.items():
        shown = f"{value:.6g}" if isinstance(value, float) else value
        typer.echo(f"{name}: {shown}")


def _say(line: str) -> None:
    typer.echo(f"ofw serve: {printable(' '.join(line.split()))}", err=True)


def _say_what_is_missing(command: str, error: ModuleNotFoundError) -> None:
    if error.name is None or error.name.split(".")[0] == "onlinefw":
        raise error
    refuse(command, f"it needs {error.name}: {NEEDED}", 1)


def _token(path: Path | None) -> str | None:
    """Return the token of a file, or else of the environment."""
    if path is not None:
        text = path.read_text(encoding="utf-8").strip()
        if not text:
            raise ValueError(f"{path} is empty: write the token into it")
        return text
    return os.environ.get("ONLINEFW_TOKEN") or None
