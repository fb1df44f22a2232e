"""``ofw fit``: learn a model from a file or a pipe; the run can be stopped and resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import typer
from sklearn.base import clone

from .._devices import NoDevice
from .._files import only_writer
from .._words import counted, forgetting_in_words, printable
from ..distributed import ClusterLost
from ..files import ModelFileError, save
from ..fitting.certificate import gap_facts, gap_said
from ..fitting.clicks import ClicksSession
from ..fitting.forgetting import forgetting_facts
from ..fitting.loop import Checkpoint, learn, new_session, resume
from ..fitting.ratings import RatingsSession
from ..fitting.session import Session
from ..past.place import here
from ..past.ray.cluster import check_workers
from ..past.ray.errors import WorkerFailed
from ..readers import DataError, Reader, read_ratings, read_rows
from ..readers.expected import expected_rows
from ..readers.sources import find_sources
from .fit_display import Display
from .fit_kept import Learned, kept
from .fit_options import check_resumed
from .fit_test_file import check_test, model_is_written, test_score
from .json_text import as_json_text
from .model_file import check_checkpoint
from .paths import check_output
from .refuse import one_line_errors, refuse

__all__ = ["FitOptions", "run_fit"]


#: With more rows than this, it is said that they are sorted first.
MANY_ROWS = 1_000_000


@dataclass
class FitOptions:
    """What the user asked for; checkpoints keep it, and a resumed run goes on with it."""

    kind: str
    data: list[str]
    columns: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def reader(
        self,
        session: Session,
        position: Any = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Reader[Any]:
        """Open the data, from the beginning or where a checkpoint stopped."""
        return self._opened(session, self.data, position=position, stop=stop)

    def test_reader(self, session: Session, test: str, learned: Reader[Any]) -> Reader[Any]:
        """Open a test file, whose columns are those that are learned, by their names."""
        more: dict[str, Any] = {"sort_by": None}
        names = learned.feature_columns
        if learned.has_header:
            # What was guessed is guessed again: one file may say userId, the other user_id.
            known = learned.column_names
            more |= {k: known[k] for k in known if self.columns.get(k) is not None}
            if any(name.isdecimal() for name in [*(names or []), *known.values()]):
                more["header"] = True  # these are names, not numbers of columns
        if names:
            rest = {"drop": None, "missing": "refuse", "text": None}
            more |= {"features": names, "like": learned.treatment, **rest}
        elif learned.n_features:
            more["n_features"] = learned.n_features
        return self._opened(session, [test], **more)

    def _opened(self, session: Session, paths: list[str], **more: Any) -> Reader[Any]:
        options = {**self.columns, **self.reading, "loss": session.loss, **more}
        if self.kind == "clicks":
            wanted = self.settings.get("at_least") is not None
            return read_ratings(paths, needs_rating=wanted, **{**options, "loss": None})
        if self.kind == "matrix":
            return read_ratings(paths, **options)
        return read_rows(paths, labels=self.kind == "classification", **options)

    def session(self) -> Session:
        """Make the session that learns, told about how many rows the files have."""
        sources = find_sources(self.data, self.reading.get("format"))
        return new_session(self.kind, expected_rows=expected_rows(sources), **self.settings)


def run_fit(
    options: FitOptions,
    out: Path,
    *,
    test: str | None = None,
    checkpoint_at: Path | None = None,
    every: int = 1000,
    resume_from: Path | None = None,
    given: Collection[str] = (),
    workers: int | None = None,
    ray_address: str | None = None,
    device: str = "cpu",
    quiet: bool = False,
    as_json: bool = False,
    force: bool = False,
) -> None:
    """Learn, and write the model; ``given`` names the options that the user has typed."""
    with one_line_errors("fit"):
        if resume_from is not None:
            check_checkpoint(resume_from)
        inputs = [*options.data, test, resume_from]
        check_output(out, "-o", "model", inputs, force)
        if checkpoint_at is not None:
            read = [one for one in inputs if one is not resume_from]  # which goes on in its file
            check_output(checkpoint_at, "--checkpoint", "checkpoint", [*read, out], force)
        _use_ray(workers, ray_address)
        checkpoint_at = checkpoint_at or resume_from
        try:
            session, options = _begin(options, resume_from, given)
            _use_place(session, workers, device, resume_from is None or "device" in given)
            checkpoint = None
            if checkpoint_at is not None:
                checkpoint = Checkpoint(checkpoint_at, every, asdict(options))
                if checkpoint_at == resume_from:
                    checkpoint.note(session)
            silent = quiet or as_json
            with only_writer(checkpoint_at) if checkpoint_at else nullcontext():
                summary = _learn_and_save(session, options, out, checkpoint, test, silent, quiet)
        except (NoDevice, WorkerFailed) as error:
            refuse("fit", error)
        except ClusterLost as error:
            _say_lost(error, checkpoint_at)
            raise typer.Exit(1) from None
        with one_line_errors("fit", f"; the model is written: {out}"):
            _say(summary, out, quiet=quiet, as_json=as_json)
        if not summary["ended"]:
            _say_how_to_go_on(checkpoint)
            raise typer.Exit(1)


def _begin(
    options: FitOptions, resume_from: Path | None, given: Collection[str]
) -> tuple[Session, FitOptions]:
    """Return a session, new or from a checkpoint, and the options that it runs with."""
    if resume_from is None:
        return options.session(), options
    session, kept = resume(resume_from)
    if kept["kind"] != options.kind:
        raise ModelFileError(
            f"{resume_from} is a checkpoint of ofw fit {kept['kind']}: go on with that, "
            "or begin anew without --resume"
        )
    check_resumed(given, asdict(options), kept, resume_from)
    if "on_bad_row" in given:  # a resumed run may treat the rows to come otherwise
        kept["reading"]["on_bad_row"] = options.reading["on_bad_row"]
    return session, FitOptions(**{**kept, "data": options.data or kept["data"]})


def _use_place(session: Session, workers: int | None, device: str, wanted: bool) -> None:
    """Move the past to the place asked for; of a checkpoint, to its device if there is one here."""
    if session.kind == "clicks":  # learned here, event by event
        return
    session.model.set_params(workers=workers)
    if wanted:
        session.model.set_params(device=device)
    elif workers is None:
        session.model.set_params(device=here(session.model.device).device)


def _learn_and_save(
    session: Session,
    options: FitOptions,
    out: Path,
    checkpoint: Checkpoint | None,
    test: str | None,
    silent: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Learn, score, and write the model; return the summary. What was learned is never lost."""
    interrupted: list[int] = []

    def stop() -> bool:
        return bool(interrupted)

    def save_as_it_is(path: Path) -> None:
        _save(session, path, _notes(session, options, {"ended": False}, reader))

    with options.reader(session, position=session.position, stop=stop) as reader:
        if test is not None:
            with options.test_reader(session, test, reader) as rows:
                check_test(rows, test, reader, quiet)
        _say_sorting(session, options, quiet)
        learned = Learned(session, asdict(options), out, checkpoint, save_as_it_is)
        with kept(learned):
            with Display(silent) as display, _ctrl_c_noted(interrupted):
                ended = learn(
                    session, reader, checkpoint=checkpoint, on_round=display.show, stop=stop
                )
            if session.rounds == 0:
                _refuse_no_rounds(options, checkpoint, ended, reader)
            summary = _summary(session, options)
            summary["ended"] = ended
            if reader.bad_rows.total:
                summary["rows left out"] = reader.bad_rows.counts
            _save(session, out, _notes(session, options, summary, reader))
        if test is not None:
            # The model is on disk by now, whatever is in the test file.
            with model_is_written(out):
                with options.test_reader(session, test, reader) as rows:
                    summary["test file"] = test_score(session, rows)
                _save(session, out, _notes(session, options, summary, reader))
    return summary


def _say_sorting(session: Session, options: FitOptions, quiet: bool) -> None:
    rows = session.expected_rows or 0
    if options.columns.get("sort_by") is not None and rows >= MANY_ROWS and not quiet:
        said = f"ofw fit: about {rows:,} rows are read and sorted in memory before learning begins"
        typer.echo(said, err=True)


def _refuse_no_rounds(
    options: FitOptions, checkpoint: Checkpoint | None, ended: bool, reader: Reader[Any]
) -> NoReturn:
    if not ended:
        _say_how_to_go_on(checkpoint, "before the first round, so there is no model yet")
        raise typer.Exit(1)
    left_out = reader.bad_rows
    raise DataError(
        "no rows were learned",
        file=", ".join(options.data),
        remedy=str(left_out) if left_out.total else "check that there are rows to learn",
    )


def _notes(
    session: Session, options: FitOptions, summary: dict[str, Any], reader: Reader[Any]
) -> dict[str, Any]:
    """Return what is kept beside the model."""
    return {
        "summary": summary,
        "features": reader.feature_names,
        "header": reader.has_header,
        "columns": options.columns,
        "treatment": reader.treatment,
        "columns are scaled": getattr(session.model, "scale_", None) is not None,
        "score over time": {"name": session.score.name, **session.score_path.columns()},
    }


@contextmanager
def _ctrl_c_noted(seen: list[int]) -> Iterator[None]:
    """Note the first Ctrl-C, so that the round is finished; the second one interrupts."""

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _summary(session: Session, options: FitOptions) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "kind": options.kind,
        "rows read": session.rows_read,
        "rows learned": session.rows_learned,
        "rounds": session.rounds,
        "epochs": getattr(session.model, "epochs", 1),
        "progressive": session.score.summary(),
        **gap_facts(session.model),
        **session.size(),
    }
    if options.kind != "clicks":
        summary["radius"] = session.model.radius_
    if session.model.half_life is not None:
        summary["forgetting"] = forgetting_facts(session.model)
    if session.n_test:
        summary["held out"] = session.test_score().summary()
    return summary


def _save(session: Session, out: Path, notes: dict[str, Any]) -> None:
    names = {}
    model = session.model
    if isinstance(session, RatingsSession):
        rows, columns = model.shape_
        names = {"row_ids": session.users.ids[:rows], "col_ids": session.items.ids[:columns]}
    elif isinstance(session, ClicksSession):
        names = dict(zip(("row_ids", "col_ids"), session.names(), strict=True))
    elif notes["features"] and notes["header"]:
        # Only the saved copy gets names: the session gives its own model arrays without names.
        state = {**model.state_dict(past=False), "feature_names_in": list(notes["features"])}
        model = clone(model).load_state(state)
    save(model, out, notes=notes, **names)


def _say(summary: dict[str, Any], out: Path, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(as_json_text({**summary, "model": str(out)}))
        return
    if quiet:
        return
    rows, rounds = summary["rows learned"], summary["rounds"]
    how = ", one after another" if rows == rounds > 1 else f" in {counted(rounds, 'round')}"
    if summary["kind"] == "clicks":
        users, items = counted(summary["users"], "user"), counted(summary["items"], "item")
        how = f" of {users} on {items}, one after another"
    lines = [
        f"learned {counted(rows, 'row')}{how}",
        f"predict-then-learn: {_score(summary['progressive'])}",
    ]
    for key in ("held out", "test file"):
        if key in summary:
            left_out = _left_out(summary[key].get("rows left out"))
            lines.append(f"{key}: {_score(summary[key])}{left_out and f'; {left_out}'}")
    if "rank" in summary:
        size = f"rank {summary['rank']:,}"
    else:
        coefficients = counted(summary["coefficients"], "coefficient")
        size = f"nonzeros {summary['nonzeros']:,} of {coefficients}"
    radius = f", radius {summary['radius']:.4g}" if "radius" in summary else ""
    lines.append(f"model: {size}{radius}; {gap_said(summary)}")
    if "forgetting" in summary:
        lines.append(f"forgetting: {forgetting_in_words(**summary['forgetting'])}")
    if "rows left out" in summary:
        lines.append(_left_out(summary["rows left out"]))
    lines.append(f"written: {out}")
    typer.echo(printable("\n".join(lines)))


def _left_out(counts: dict[str, int] | None) -> str:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in (counts or {}).items())
    return f"rows left out: {reasons}" if reasons else ""


def _score(score: dict[str, Any]) -> str:
    if not score["rows"]:
        return "no rows"
    if "mse" in score:
        r2 = "" if score["r2"] is None else f", R2 {score['r2']:.3f}"
        errors = f"MSE {score['mse']:.4g}, RMSE {score['rmse']:.4g}"
        return f"{errors}{r2} ({counted(score['rows'], 'row')})"
    if "recall" in score:
        return (
            f"{score['recall']:.1%} of items were among the {score['at']} best for the user, NDCG "
            f"{score['ndcg']:.3f} ({counted(score['rows'], 'event')} ranked)"
        )
    plain = score["error of the commonest label"]
    rows = counted(score["rows"], "row")
    return f"error {score['error']:.2%} ({rows}; commonest label: {plain:.2%})"


def _say_how_to_go_on(checkpoint: Checkpoint | None, when: str = "and the model written") -> None:
    if checkpoint is None:
        typer.echo(f"ofw fit: stopped {when}; without --checkpoint it cannot go on", err=True)
    else:
        typer.echo(
            f"ofw fit: stopped {when}; the same command with --resume {checkpoint.path} goes on",
            err=True,
        )


def _use_ray(workers: int | None, address: str | None) -> None:
    """Check the options of Ray before any data are read, and pass the address on."""
    if workers is None:
        if address is not None:
            raise ValueError("--ray-address is for --workers: say how many of them to use")
        return
    try:
        check_workers(workers)
    except RuntimeError as error:  # Ray is not installed
        raise ValueError(str(error).replace("use workers=None", "leave --workers out")) from None
    if address is not None:
        os.environ["RAY_ADDRESS"] = address


def _say_lost(error: ClusterLost, checkpoint: Path | None) -> None:
    """Say in one line how to go on."""
    why = str(error).split(";")[0]
    if checkpoint is not None and checkpoint.exists():
        how = (
            f"the same command with --resume {checkpoint} goes on from the last checkpoint, with "
            "any number of --workers or without"
        )
    else:
        how = "there is no checkpoint yet, so begin anew (with --checkpoint it can go on)"
    typer.echo(f"ofw fit: {why}; {how}", err=True)
