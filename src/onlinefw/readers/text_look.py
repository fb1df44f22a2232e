"""Which columns are text, and what their categories are: the first rows tell."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import Array
from .files import Dialect, open_source
from .plans import RowPlan
from .sources import Source
from .text_columns import LOOK, find_text_columns
from .treatment import Treatment

__all__ = ["look_for_text"]


#: Text is looked at in blocks of this size: no more than needed.
SOME_BYTES = 1 << 18


class _EveryColumn(Treatment):
    """All columns are taken for text, which is kept as it is."""

    def __init__(self) -> None:
        super().__init__("mean", "hash")

    def is_text(self, column: str) -> bool:
        return True

    def features(self, numbers: Sequence[Array], texts: Sequence[Array], dtype: Any) -> Array:
        return np.column_stack(texts)


def look_for_text(source: Source, plan: RowPlan, dialect: Dialect, has_header: bool) -> None:
    """Tell the plan, which knows its features already, which of them are text."""
    names = plan.feature_names or []
    look = RowPlan(None, names, False, False, object, treatment=_EveryColumn())
    parts, n = [], 0
    dialect = replace(dialect, header=has_header, block_bytes=min(dialect.block_bytes, SOME_BYTES))
    with closing(open_source(source, look, dialect)) as file:
        for batch in file.batches(None, LOOK):
            parts.append(batch.fields["X"])
            n += len(parts[-1])
            if n >= LOOK:
                break
    rows = np.concatenate(parts)[:LOOK] if parts else np.empty((0, len(names)), dtype=object)
    columns = plan.treatment.columns or []
    plan.treatment.found(
        find_text_columns({name: rows[:, j].tolist() for j, name in enumerate(columns)})
    )
