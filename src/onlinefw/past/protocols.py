"""What can be asked of a past: rows with predictions, X'X, and entries of a matrix.

An objective decides what to do, and its past does it. All answers are *sums* over the data, never
means, so the answers of a past's parts can be added up. The objective has checked all arguments.

Vectors as long as theta come back as numpy arrays, unless a verb says "at the place": then they are
CuPy arrays if the past is on a GPU of this process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .._batches import BatchHandle
from .._typing import Array, State
from ..atoms import Atom
from ..iterates import DenseIterate, LowRank
from ..losses import Loss
from .entries_state import Counts
from .leaving import Forgotten
from .unobserved import UnobservedPast

__all__ = ["EntriesPast", "GramPast", "Past", "RowsPast"]


class Past(Protocol):
    """What all pasts have."""

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers, the same from every place."""
        ...

    def load_state(self, state: State) -> None:
        """Load the ``state_dict`` of a past of the same kind, from any place."""
        ...

    def close(self) -> None:
        """Release what is held outside this process, if anything is."""
        ...


class RowsPast(Past, Protocol):
    """Rows x_i with weights w_i and, for every model m, prediction z_i and target y_i of each row.

    The predictions are those of ``iterates[m]``, z_i = <theta, x_i>, without intercept. A row that
    was forgotten has weight 0 until ``keep`` removes it.

    Attributes
    ----------
    iterates : list of DenseIterate
        Whose predictions are held, one for each model; None until its shape is known.
    """

    iterates: list[DenseIterate | None]

    def __len__(self) -> int: ...

    def add_model(self, loss: Loss, iterate: DenseIterate | None, waits: bool) -> int:
        """Let one more model learn from the rows, before the first have come; return its number.

        ``waits`` says that only gradients need its predictions, so that a move may wait until the
        next gradient reads the rows.
        """
        ...

    def keep_models(self, models: list[int]) -> None:
        """Keep some of the models, which get new numbers in this order."""
        ...

    def models(self) -> list[tuple[Loss, DenseIterate | None, bool]]:
        """Return what each model was added with."""
        ...

    def products(self, X: Any, thetas: Array) -> Array:
        """Return X T for rows that are not held, a column of T for each model."""
        ...

    def append(self, X: Any, Z: Array, Y: Array, w: Array) -> None:
        """Add rows with their weights, and a column of predictions and targets for each model."""
        ...

    def append_handle(
        self, handle: BatchHandle, b: float, check: Callable[[list[float]], None]
    ) -> tuple[float, Array]:
        """Let a worker open and keep a batch; return its mean loss at intercept b, and weights.

        ``check`` may refuse the loss, before anything changes.
        """
        ...

    def weigh(self, rows: Array, weight: float | Array) -> None:
        """Give some rows (by their positions) another weight; 0 forgets them."""
        ...

    def rescale(self, factor: float) -> None:
        """Multiply all weights by a power of two."""
        ...

    def keep(self, mask: Array) -> None:
        """Remove the rows where ``mask`` is False."""
        ...

    def arrange(self) -> None:
        """Hold the rows in a form that does not depend on the batches in which they came."""
        ...

    def sharing(self, threads: Any) -> Any:
        """Return a context for a round, whose steps share what they can; ``threads`` is another."""
        ...

    def move(self, m: int, atom: Atom, step: float) -> None:
        """Let z <- (1 - step) z + step X a for one model, now or with the next read of the rows."""
        ...

    def refresh(self, m: int) -> None:
        """Compute all predictions of one model from its iterate again."""
        ...

    def agree(self, m: int) -> None:
        """Take note that all predictions of one model agree with its iterate as it is now."""
        ...

    def line(self, m: int, atom: Atom, b: float) -> tuple[float, float, float] | None:
        """Begin a line z + t (X a - z); return value, slope, curvature at 0 of a quadratic loss."""
        ...

    def change(self, m: int, chosen: Array, change: Array) -> None:
        """Begin a line z + t (X_S c): some coordinates of theta change."""
        ...

    def line_value(self, m: int, t: float, b: float) -> float:
        """Return the sum of w phi(z(t) + b, y) along the line that was begun."""
        ...

    def line_slope(self, m: int, t: float, b: float) -> float:
        """Return the derivative of that in t."""
        ...

    def advance(self, m: int, t: float) -> None:
        """Move the predictions to z(t) on the line that was begun."""
        ...

    def gradients(self, models: list[int], intercepts: list[float]) -> Array:
        """Return X' (w phi'(z + b, y)) of some models, a column each, from one read of the rows."""
        ...

    def total(self, m: int, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        ...

    def totals(self, m: int, b: float) -> tuple[float, float, float]:
        """Return the sums of w phi, of w phi' and of w phi'', all at (z + b, y)."""
        ...

    def few_rows(self, m: int) -> tuple[Any, ...] | None:
        """Return kind and parameter of the loss, z, y and w, if rows are few and on the host."""
        ...

    def limits(self, m: int) -> tuple[float, float]:
        """Return the smallest and largest b at which some z + b is y (0, for labels -1 and 1)."""
        ...

    def residuals(self, m: int) -> tuple[Array, Array]:
        """Return y - z and w of all rows, in any order."""
        ...

    def steepest(self, m: int, b: float) -> float:
        """Return the largest ``w |phi'(z + b, y)|``."""
        ...

    def second_order(self, m: int, chosen: Array, b: float) -> tuple[Array, Array, float]:
        """Return X_S' D X_S, X_S' d and the sum of d, for curvatures d >= 0 of every row."""
        ...

    def gram_product(self, vector: Array) -> Array:
        """Return X' diag(w) X v."""
        ...

    def predictions(self, m: int) -> Array:
        """Return the z of one model at all rows with a weight above 0, in their order."""
        ...


class GramPast(Past, Protocol):
    """The symmetric H = X' diag(w) X of all rows that came.

    Attributes
    ----------
    n_added : int
        How often H has changed; it is counted just before that.
    """

    n_added: int

    def add(self, X: Any, w: Array) -> None:
        """H += X' diag(w) X, for rows at the place (see ``bring``)."""
        ...

    def rescale(self, factor: float) -> None:
        """H *= factor, a power of two."""
        ...

    def bring(self, X: Any) -> Any:
        """Return a batch in double precision, at the place."""
        ...

    def times(self, vector: Array) -> Array:
        """Return H v."""
        ...

    def combine(self, chosen: Array, values: Array) -> Array:
        """Return the sum of values_k H e_{chosen_k}."""
        ...

    def block(self, chosen: Array) -> Array:
        """Return H in the chosen rows and columns."""
        ...


class LeavingPast(Past, Protocol):
    """Entries that fade with age, and leave."""

    def rescale(self, factor: float) -> None:
        """Multiply the weights of all entries with a power of two; means stay as they are."""
        ...

    def drop(self, least: float) -> tuple[float, float]:
        """Sort everything in, and drop entries that weigh less; counts speak of the others.

        Return weight and weighted squares of those dropped.
        """
        ...

    def forget(self, row: int) -> Forgotten:
        """Sort everything in, and remove a row's entries; return what they were."""
        ...

    def value_range(self) -> tuple[float, float]:
        """Return the smallest and the largest value kept (of repeats that are summed, means)."""
        ...


class EntriesPast(LeavingPast, UnobservedPast, Protocol):
    """Observed entries (i, j) with weight c and target s, and the prediction z of each.

    z is the entry of ``theta`` alone; the whole prediction is z plus the offsets of its row and
    column. The older entries are sorted by row, the newest are in a tail in the order in which
    they came. A move along an atom waits for the next read, which goes through all entries anyway.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    theta : LowRank
        Whose predictions are held; at the place, or in this process's memory if workers hold the
        entries. The objective moves it before it tells the past. If it was interrupted between
        the two, ``theta.version`` says so, and the next read computes all predictions again.
    dtype, loss, quadratic
        The type of the predictions, the loss of an entry, and whether that loss is quadratic.
    row_offset, col_offset : ndarray
        What is added to z, in this process's memory.
    counts : Counts
        How many observations came, and weight and weighted squares of those kept; they change
        with ``append``, ``rescale``, ``drop`` and ``forget``, in one assignment.
    n_sorted, n_newest : int
        How many entries are sorted, and how many are in the tail.
    reads : int
        How often all entries have been read.
    opens_handles : bool
        Whether batches in files are read where the entries are (``open_handle``).
    """

    shape: tuple[int, int]
    theta: LowRank
    dtype: Any
    loss: Loss
    quadratic: bool
    row_offset: Array
    col_offset: Array
    counts: Counts
    reads: int
    n_sorted: int
    n_newest: int
    opens_handles: bool

    def append(self, rows: Array, cols: Array, w: Array, y: Array, z: Array | None = None) -> Array:
        """Add entries to the tail; return their predictions, which are theta's unless given."""
        ...

    def open_handle(self, handle: BatchHandle, growing: bool) -> tuple[int, int]:
        """Let workers read and check a batch; return the shape that it needs; nothing changes."""
        ...

    def append_handle(self, handle: BatchHandle) -> tuple[float, float]:
        """Add a batch that was opened; return the sums of its losses at theta, and its weights."""
        ...

    def grow(self, m1: int, m2: int) -> None:
        """Let the matrix have m1 rows and m2 columns, as theta has already."""
        ...

    def remember(self) -> Any:
        """Return what ``go_back`` needs to undo growth."""
        ...

    def go_back(self, memory: Any) -> bool:
        """Undo growth that failed half-way; return whether that is possible here."""
        ...

    def merge(self, n: int) -> None:
        """Carry out a move that waits, then sort the n oldest entries of the tail in."""
        ...

    def set_offsets(self, rows: Array, columns: Array) -> None:
        """Predict z + rows[i] + columns[j] from now on."""
        ...

    def move(self, keep: float, u: Array | None, v: Array | None) -> None:
        """Let z <- keep z + u_i v_j (u, v at the place; None: nothing is added)."""
        ...

    def refresh(self) -> None:
        """Compute all predictions from theta again."""
        ...

    def read(
        self, V: Array, row_scale: Array | None, plus: Array | None = None
    ) -> tuple[Array, Any]:
        """Renew all slopes G; return W = G' (row_scale Y) and <z, g>, both at the place.

        V is a block of at most eight columns at the place. Y = G V + plus stays with the past, for
        ``combine`` and ``products``.
        """
        ...

    def overlaps(
        self, V: Array, W: Array, z_dot_g: Any
    ) -> tuple[Array, Array | None, Array | None, float]:
        """Return V'W, W'W, (G V)'(G V) (None where they are not cheap) and <z, g>, on the host."""
        ...

    def combine(self, to_left: Array, W: Array, to_right: Array) -> tuple[Array, Array]:
        """Return (G V) to_left and W to_right at the place, in double precision."""
        ...

    def normal(
        self, v: Array, row_scale: Array | None, plus: Array | None = None
    ) -> tuple[Array, Array]:
        """Return y = G v + plus and G' (row_scale y) at the place, with the last slopes."""
        ...

    def forward(self, V: Array) -> Array:
        """Return G V in double precision, with the slopes of the last read."""
        ...

    def backward(self, U: Array) -> Array:
        """Return G' U in double precision, with the slopes of the last read."""
        ...

    def dense_slopes(self) -> Array:
        """Return the slopes as a dense numpy array."""
        ...

    def squared_norms(self) -> tuple[float, float]:
        """Return |G|^2 of sorted and of newest entries; infinite where repeats are kept apart."""
        ...

    def total_loss(self) -> float:
        """Return the sum of all losses; for the square loss, without the squares of the targets."""
        ...

    def line(self, u: Array, v: Array) -> tuple[float, float, float] | None:
        """Begin a line z + t (u_i v_j - z); if it is a parabola, return value, slope, curvature."""
        ...

    def line_value(self, t: float) -> float:
        """Return the sum of all losses along the line that was begun."""
        ...

    def line_slope(self, t: float) -> float:
        """Return the derivative of that in t."""
        ...

    def heaviest(self) -> tuple[float, float]:
        """Return the largest total weight of one entry, sorted and newest."""
        ...

    def weighted_sums(self, rows: Array, columns: Array, with_theta: bool) -> tuple[Array, Array]:
        """Return sums of c (columns[j] [+ z]) by row, and of c (rows[i] [+ z]) by column."""
        ...

    def newest_sums(self, theta: LowRank) -> tuple[float, float]:
        """Return loss and weight of the newest entries, as another theta predicts them."""
        ...

    def begin_regressions(self) -> None:
        """Prepare ridge regressions of the sorted entries, good until the next read or merge."""
        ...

    def solve_rows(self, right: Array, ridge: Array) -> Array:
        """Return the rows' factor at the place, with a penalty for each row."""
        ...

    def solve_columns(self, left: Array, ridge: Array) -> Array:
        """Return the columns' factor at the place, with a penalty for each column."""
        ...

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed, increasing."""
        ...

    def seen(self) -> tuple[Array, Array]:
        """Return those columns of every row, compressed: indptr, columns."""
        ...
