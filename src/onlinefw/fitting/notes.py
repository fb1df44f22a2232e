"""What ``ofw fit`` notes beside a model, for those who read model files."""

from __future__ import annotations

from typing import Any

__all__ = ["columns_seen", "notes_of"]

#: What each note is. Whatever has another form was noted by somebody else.
FORMS = {
    "summary": dict,
    "features": list,
    "columns": dict,
    "treatment": dict,
    "score over time": dict,
    "made": dict,
    "columns seen": dict,
}


def notes_of(model: Any) -> dict[str, Any]:
    """Return the notes of a model that have the form in which ``ofw fit`` writes them.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> from onlinefw.fitting.notes import notes_of
    >>> model = ofw.FrankWolfeRegressor()
    >>> model.notes_ = {"summary": "my own words", "header": True}
    >>> notes_of(model)
    {'header': True}
    """
    notes = getattr(model, "notes_", None) or {}
    kept: dict[str, Any] = {
        name: note for name, note in notes.items() if isinstance(note, FORMS.get(name, object))
    }
    names = kept.get("features")
    width = getattr(model, "n_features_in_", None)
    if names is not None and (len(names) != width or not all(isinstance(n, str) for n in names)):
        del kept["features"]
    return kept


def columns_seen(notes: dict[str, Any]) -> dict[int, int]:
    """Return in how many rows the columns with a coefficient were seen, by their numbers.

    Empty for models of older versions, and for those that ``ofw fit`` has not made.

    Examples
    --------
    >>> from onlinefw.fitting.notes import columns_seen
    >>> columns_seen({"columns seen": {"columns": [0, 4], "rows": [3000, 7]}})
    {0: 3000, 4: 7}
    """
    seen = notes.get("columns seen", {})
    columns, rows = seen.get("columns"), seen.get("rows")
    for numbers in columns, rows:
        if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
            return {}
    return dict(zip(columns, rows, strict=False))
