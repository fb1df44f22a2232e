"""Which options of ``ofw fit`` go with which kind of model, and which a checkpoint has fixed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

__all__ = ["LOSSES", "check_kind", "check_loss", "check_resumed", "losses_in_words"]

#: The losses of each kind; the first is the default.
LOSSES = {
    "matrix": (
        "square",
        "logistic",
        "sigmoid",
        "gaussian",
        "bernoulli",
        "poisson",
        "exponential",
    ),
    "regression": ("square", "correntropy", "gaussian", "poisson", "bernoulli", "exponential"),
    "classification": ("sigmoid", "logistic", "bernoulli", "square"),
}
#: Kinds that are learned in rounds, within a radius.
IN_ROUNDS = ("matrix", "regression", "classification")
#: Options that only some kinds have.
KINDS = {
    "user": ("matrix", "clicks"),
    "item": ("matrix", "clicks"),
    "rating": ("matrix", "clicks"),
    "at_least": ("clicks",),
    **dict.fromkeys(("radius", "loss", "batch_size", "epochs"), IN_ROUNDS),
    **dict.fromkeys(("device", "workers", "ray_address"), IN_ROUNDS),
    "target": ("regression", "classification"),
    **dict.fromkeys(("features", "drop", "missing", "text"), ("regression", "classification")),
    "n_features": ("regression", "classification"),
    "zero_based": ("regression", "classification"),
    "classes": ("classification",),
}
#: Options of the model itself.
OF_MODEL = ("radius", "loss", "batch_size", "epochs", "classes", "half_life", "at_least")
#: Options of the run, which may differ when it goes on.
OF_RUN = ("device", "workers", "ray_address")
#: Options that a checkpoint fixes: the part of it that keeps each one, and the name there.
FIXED = {
    **{name: ("columns", name) for name in KINDS if name not in OF_MODEL + OF_RUN},
    **{name: ("settings", name) for name in OF_MODEL},
    "sort_by": ("columns", "sort_by"),
    "test_fraction": ("settings", "test_share"),
    "seed": ("settings", "seed"),
    "data_format": ("reading", "format"),
    "delimiter": ("reading", "delimiter"),
    "header": ("reading", "header"),
}


def losses_in_words() -> str:
    """Return the losses of each kind, for a help text."""
    return "; ".join(
        f"{kind}: {losses[0]} (default), {', '.join(losses[1:])}" for kind, losses in LOSSES.items()
    )


def check_loss(kind: str, loss: str) -> None:
    """Refuse a loss that models of this kind do not have."""
    if loss not in LOSSES[kind]:
        raise ValueError(f"--loss takes one of {', '.join(LOSSES[kind])} for {kind}, not {loss!r}")


def check_kind(kind: str, given: Collection[str]) -> None:
    """Refuse an option of another kind, which would be ignored."""
    for name in given:
        if kind not in KINDS.get(name, (kind,)):
            kinds = " and ".join(KINDS[name])
            raise ValueError(f"{_flag(name)} is for ofw fit {kinds}, not for {kind}; leave it out")


def check_resumed(
    given: Collection[str], asked: dict[str, Any], kept: dict[str, Any], checkpoint: Path
) -> None:
    """Refuse an option that differs from what the checkpoint was begun with."""
    for name in given:
        if name not in FIXED:
            continue
        part, key = FIXED[name]
        now, before = asked[part].get(key), kept[part].get(key)
        if now != before:
            was = "its default" if before is None else repr(before)
            raise ValueError(
                f"{_flag(name)}: {checkpoint} was begun with {was}, not with {now!r}; leave the "
                "option out to go on, or begin anew without --resume"
            )


def _flag(name: str) -> str:
    return "--format" if name == "data_format" else f"--{name.replace('_', '-')}"
