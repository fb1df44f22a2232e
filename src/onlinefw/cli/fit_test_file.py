"""The file of ``ofw fit --test``: looked at before learning, scored when the model is on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from .._words import printable
from ..fitting.session import Session
from ..readers import Reader
from ..readers.errors import shown
from .fit_kept import OF_THE_INPUT
from .refuse import in_words, refuse

__all__ = ["check_test", "model_is_written", "test_score"]

#: Names of columns that are shown, at most.
SHOWN = 10


def check_test(rows: Reader[Any], test: str, learned: Reader[Any], quiet: bool) -> None:
    """Refuse a test file whose rows cannot be used; say which of its columns are not."""
    known = learned.all_names
    extra = [name for name in rows.all_names or [] if known is not None and name not in known]
    if extra and not quiet:
        more = ", ..." if len(extra) > SHOWN else ""
        names = ", ".join(map(shown, extra[:SHOWN]))
        typer.echo(
            printable(f"ofw fit: {test}: not in the data that are learned, ignored: {names}{more}"),
            err=True,
        )
    if not Path(test).is_file():  # a pipe can be read only once
        return
    next(rows, None)
    if learned.n_features and not learned.feature_columns:
        for _ in rows:  # LIBSVM: any row may have a feature that was not learned
            pass


def test_score(session: Session, rows: Reader[Any]) -> dict[str, Any]:
    """Score the model on all rows of the test file."""
    score = session.new_score()
    for chunk in rows:
        session.score_chunk(chunk, score)
    left_out = rows.bad_rows.counts
    return {**score.summary(), **({"rows left out": left_out} if left_out else {})}


@contextmanager
def model_is_written(out: Path) -> Iterator[None]:
    """If this fails, say what failed and that the model is there."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        why = "stopped" if isinstance(error, KeyboardInterrupt) else in_words(error)
        code = 2 if isinstance(error, OF_THE_INPUT) else 1
        refuse("fit", f"the test file is not scored: {why}; the model is written: {out}", code)
