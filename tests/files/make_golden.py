"""Write the model files that every later version must read: run once for each format version.

python -m tests.files.make_golden
"""

from pathlib import Path

import onlinefw as ofw
from onlinefw.files.container import FORMAT_VERSION

from .zoo import ZOO, stream

GOLDEN = Path(__file__).parent / "golden"
NAMES = (
    "regressor, rows",
    "classifier, three classes",
    "search, of classifiers",
    "completion, ridge",
    "completion, biases",
)


def main() -> None:
    """Fit a model of each kind; what it predicts is in its notes."""
    for name in NAMES:
        model = ZOO[name]()
        batches = stream(name, 0)
        for batch in batches[:4]:
            model.partial_fit(**batch)
        X = batches[5]["X"] if "completion" not in name else batches[0]["X"]
        X = X.toarray() if hasattr(X, "toarray") else X
        notes = {"X": X.tolist(), "predictions": model.predict(X).tolist()}
        file = name.replace(", ", "-").replace(" ", "-") + f"-v{FORMAT_VERSION}.ofw"
        ofw.save(model, GOLDEN / file, notes=notes)


if __name__ == "__main__":
    main()
