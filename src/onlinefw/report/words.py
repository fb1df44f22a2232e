"""The sentences of the page, as plain text."""

from __future__ import annotations

import shlex
from math import isnan, sqrt
from typing import Any

from .._words import (
    UNINFORMATIVE,
    counted,
    forgetting_in_words,
    gap_share,
    mood_in_words,
)
from ..fitting.certificate import gap_facts
from .facts import Facts

__all__ = ["certificate", "commands", "heading", "score_cards", "what_it_is"]

#: How ``ofw fit`` measured a score: its name, and what it means.
SCORES = {
    "progressive": ("predict, then learn", "every row was predicted before it was learned"),
    "held out": ("held out", "rows that were kept apart and never learned"),
    "test file": ("test file", "rows of a file of its own, never learned"),
}


def heading(facts: Facts) -> str:
    """Return one line on what the model does."""
    if facts.has_pairs:
        rows, columns = facts.best.shape_
        return f"A model of {counted(rows, 'user')} and {counted(columns, 'item')}"
    if facts.kind == "regression":
        return f"A model that predicts {facts.target or 'a number'}"
    of = f" of {facts.target}" if facts.target else ""
    return f"A model that tells {len(facts.best.classes_)} classes{of} apart"


def what_it_is(facts: Facts) -> list[str]:
    """Return paragraphs on what the model is, without assuming any knowledge."""
    order = ", one pass in the order of arrival" if facts.summary else ""
    if facts.summary.get("epochs", 1) > 1:
        order += f" and {facts.summary['epochs'] - 1:,} over what was kept"
    learned = (
        f"It was learned from {_seen(facts)} in {counted(facts.best.n_rounds_, 'round')}{order}."
    )
    paragraphs = [f"{_predicts(facts)} {learned}", _constraint(facts), *_local(facts)]
    if facts.best.half_life is not None:
        said = forgetting_in_words(facts.best.half_life_, facts.best.changes_.tolist())
        paragraphs.append(f"Forgetting: {said}.")
    return paragraphs


def _seen(facts: Facts) -> str:
    return counted(facts.n_rows, {"matrix": "rating", "clicks": "event"}.get(facts.kind, "row"))


def _predicts(facts: Facts) -> str:
    if facts.kind == "clicks":
        rows, columns = facts.best.shape_
        return (
            f"It ranks {counted(columns, 'item')} for any of {counted(rows, 'user')}, and for "
            "somebody new: what others with like tastes have had, and what is popular now."
        )
    if facts.kind == "matrix":
        rows, columns = facts.best.shape_
        return (
            f"It predicts what any of {counted(rows, 'user')} would give any of "
            f"{counted(columns, 'item')}: a table of {counted(rows * columns, 'number')}, of which "
            "a small part has been seen."
        )
    n = facts.best.n_features_in_
    used = int(facts.coefficients.any(axis=0).sum())
    what = facts.target or ("a number" if facts.kind == "regression" else "the label")
    used_too = f"{used:,} of them {'is' if used == 1 else 'are'} used"
    text = f"It predicts {what} from {counted(n, 'column')}, as a weighted sum; {used_too}."
    if facts.kind == "classification":
        labels = [str(label) for label in facts.best.classes_]
        shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
        text += f" The classes are {shown}."
    return text


def _local(facts: Facts) -> list[str]:
    """Return what factors have found about the stream."""
    if facts.kind != "matrix":
        return []
    mood = facts.best.mood_
    return [] if mood is None else [f"Mood: {mood_in_words(*mood)}."]


def _constraint(facts: Facts) -> str:
    if facts.kind == "clicks":
        return (
            f"A user's taste and an item are {facts.best.rank_:,} numbers each. Whatever a user "
            f"has not had counts as a 0, of weight {facts.best.unobserved_:.3g} beside 1 for an "
            "event."
        )
    radius = f"{facts.best.radius_:.4g}"
    if facts.kind == "matrix":
        offsets = ", plus an offset for each user and item" if facts.best.has_offsets_ else ""
        return (
            f"The table is a sum of {counted(facts.rank, 'pattern')} (its rank), each with a "
            f"weight for every user and for every item{offsets}. The radius, {radius}, bounds the "
            f"patterns together; the loss is {facts.loss}."
        )
    constraint = facts.best.constraint
    if constraint == "l1":
        return (
            f"The radius, {radius}, bounds the sum of the absolute weights (of columns on one "
            "scale, where ofw fit has scaled them), which makes many of them zero; the loss is "
            f"{facts.loss}."
        )
    return f"The weights stay within the set {constraint!s:.60}; the loss is {facts.loss}."


def certificate(facts: Facts) -> str:
    """Return what the duality gap says about this model."""
    told = gap_facts(facts.best)
    gap, loss = told["gap"], told["mean loss"]
    data = f"the {_seen(facts)} learned"
    if isnan(gap):
        return "There is no certificate: the rows are not kept, so the gap is not known."
    if not facts.convex:
        return (
            f"The gap is {gap:.3g}. The {facts.loss} loss is not convex, so this says how near "
            f"the model is to a stationary point on {data}, not that no better one exists."
        )
    informative = told["certificate is informative"]
    if informative is False:
        return (
            f"The certificate is {UNINFORMATIVE.format(gap=gap, loss=loss)}. It is about {data}; "
            f"the scores are about new data.{_line(facts)}"
        )
    share = f": {gap_share(gap, loss)} of that loss, {loss:.3g}" if informative else ""
    given = ", with the offsets and weights of users and items as they are" * (
        facts.kind == "matrix"
    )
    return (
        f"On {data} the model's mean loss is at most {gap:.3g} above the smallest that any model "
        f"of the same radius has{given}{share}. That is proved by the duality gap, without "
        "knowing the best model. It is about the data seen; the scores are about new data."
        f"{_line(facts)}"
    )


def _line(facts: Facts) -> str:
    """Return what the picture of the gap shows, if there is one."""
    if not facts.has_gaps:
        return ""
    searched = facts.kind == "matrix" and facts.best.radius == "auto"
    jumps = " It jumps where another radius took the lead." if searched else ""
    return f" The line is the gap of each round before its step.{jumps}"


def score_cards(facts: Facts) -> list[tuple[str, str, str]]:
    """Return (number, name, explanation) for each score there is."""
    cards = []
    for key, (name, how) in SCORES.items():
        score = facts.summary.get(key)
        if score and score.get("rows"):
            rows = counted(score["rows"], "row")
            cards.append((_value(score), name, f"{_beside(score)}{rows}: {how}"))
    return cards


def _value(score: dict[str, Any]) -> str:
    if "recall" in score:
        return f"{score['recall']:.1%} found"
    return f"MSE {score['mse']:.4g}" if "mse" in score else f"{score['error']:.2%} wrong"


def _beside(score: dict[str, Any]) -> str:
    """Return a simple guess's score, to compare with."""
    if "recall" in score:
        return (
            f"so many items were among the {score['at']} that would have been shown; NDCG "
            f"{score['ndcg']:.3f}, MRR {score['mrr']:.3f}. "
        )
    if "error" in score:
        plain = score["error of the commonest label"]
        return f"always saying the commonest label: {plain:.2%} wrong. "
    said = f"RMSE {sqrt(score['mse']):.4g}, the size of a usual error. "
    if score["r2"] is None or score["r2"] >= 1.0:
        return said
    return f"{said}Always saying the mean: MSE {score['mse'] / (1.0 - score['r2']):.4g}. "


def commands(facts: Facts, file_name: str) -> list[tuple[str, str]]:
    """Return three (command, what it does)."""
    file = shlex.quote(file_name)
    inspect = (f"ofw inspect {file}", "say what the model is, in the terminal")
    if facts.has_pairs:
        ids = facts.user_ids
        user = shlex.quote(str(ids[0])) if ids is not None and len(ids) else "ID"
        return [
            (f"ofw recommend {file} --user {user} -n 10", "the items that a user would like best"),
            (
                f"ofw predict {file} pairs.csv -o predictions.csv",
                "predict a file of users and items",
            ),
            inspect,
        ]
    return [
        (f"ofw predict {file} rows.csv -o predictions.csv", "predict a file of rows"),
        (f"ofw inspect {file} --top 30", "the largest coefficients, in the terminal"),
        (f"ofw inspect {file} --json", "the same for a program"),
    ]
