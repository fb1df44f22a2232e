"""Importing the library is light: what one format or one place needs is imported when used."""

import subprocess
import sys

import pytest

HEAVY = "{'pyarrow', 'cupy', 'ray', 'matplotlib', 'pooch', 'typer'}"


def heavy_after(code, heavy=HEAVY):
    """Return the heavy libraries that a fresh process has loaded after some code."""
    code = f"import sys\n{code}\nprint(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_no_optional_library():
    assert heavy_after("import onlinefw") == []


@pytest.mark.slow
def test_neither_does_any_name_of_the_public_surface():
    code = (
        "sys.modules['pandas'] = None\n"  # scikit-learn imports it where it is, and it pyarrow
        "import onlinefw as ofw\n"
        "[getattr(ofw, name) for name in ofw.__all__]"
    )
    assert heavy_after(code) == []


def test_the_readers_load_no_library_before_a_file_is_opened():
    code = "import onlinefw.readers\nfrom onlinefw.distributed import ParquetRatings, ParquetRows"
    assert heavy_after(code) == []


#: What needs no compiler at run time; the list grows until it is the whole library.
WITHOUT_NUMBA = {
    "import": "import onlinefw.estimators.best_items, onlinefw.factors, onlinefw.theory",
    "low rank": """
import numpy as np, scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from onlinefw.iterates import LowRank
from onlinefw.sets import L1Ball, TraceNormBall
theta, ball = LowRank((30, 20)), TraceNormBall(3.0)
G = aslinearoperator(sp.random_array((30, 20), density=0.3, rng=0))
for t in range(1, 12):
    atom = ball.lmo(G)
    theta.move(atom, 2.0 / (1 + t))
theta.entries([0, 1], [2, 3]), theta.recompress(), theta.dot(G) - atom.dot(G)
L1Ball(1.0).lmo(np.ones(3)), ball.project(np.eye(4)), ball.contains(np.eye(4))
""",
    "products": """
import numpy as np
from onlinefw.linalg import krylov_pair, ritz_pairs, row_products, top_singular_pair
G = np.diag([1.0, 3.0, 2.0])
row_products(np.eye(3), np.ones((3, 2))), ritz_pairs(G.T @ G, G.T @ G, 1e-14)
krylov_pair(lambda v: (G @ v, G.T @ (G @ v)), np.ones(3) / 3**0.5), top_singular_pair(G)
""",
    "best items": """
import numpy as np
from onlinefw.estimators.best_items import best_items, best_items_of_one
best_items_of_one(np.ones(2), np.eye(3, 2), np.zeros(3), 2)
best_items(np.ones((2, 2)), np.eye(3, 2), np.zeros(3), 2)
""",
    "ratings": """
import numpy as np, onlinefw as ofw
learner = ofw.OnlineFactors((3, 4), random_state=0)
X, y = np.array([[0, 1], [2, 3], [1, 1], [0, 2]]), np.array([4.0, 3.0, 5.0, 1.0])
learner.observe(X, y), learner.learn(X, y), learner.theta, learner.certificate()
type(learner).from_state(learner.state_dict())
""",
    "clicks": """
import pathlib, pickle, tempfile
import numpy as np, onlinefw as ofw
events = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "milk"], ["eve", "nuts"]]
model, folder = ofw.FrankWolfeRecommender(half_life=100.0).fit(events), tempfile.mkdtemp()
model.learn([["cat", "tea"]]), model.partial_fit([["cat", "nuts"]])
model.refine().correct().finish()
model.recommend("ann"), model.recommend(["ann", "zoe"], n=2), model.recommend_for(["milk"])
model.similar("tea"), model.because("ann", "nuts"), model.predict([["ann", "nuts"]])
model.gap_, model.mean_loss_, model.radius_, model.factors_, model.popularity_, model.history_
file, checkpoint = pathlib.Path(folder) / "m.ofw", pathlib.Path(folder) / "m.ckpt"
ofw.save(model, file), ofw.load(file).recommend("ann")
ofw.save_checkpoint(model, checkpoint), ofw.load_checkpoint(checkpoint).learn(events)
pickle.loads(pickle.dumps(model)).forget("bob").recommend("ann")
learner = ofw.OnlineFactors(unobserved=0.1)
learner.learn([[0, 1], [2, 3]], [1.0, 1.0], ranks=True), learner.observe([[0, 1]], [1.0])
""",
    "completion": """
import pathlib, pickle, tempfile
import numpy as np, onlinefw as ofw
X, y = np.array([[0, 1], [2, 3], [1, 1], [0, 2]]), np.array([4.0, 3.0, 5.0, 1.0])
model, folder = ofw.FrankWolfeMatrixCompletion().fit(X, y), tempfile.mkdtemp()
model.learn(X, y), model.partial_fit(X, y), model.refine(), model.gap_, model.correct().gap_
model.recommend(0), model.predict(X), model.similar(1), model.factors_, model.history_
file, checkpoint = pathlib.Path(folder) / "m.ofw", pathlib.Path(folder) / "m.ckpt"
ofw.save(model, file), ofw.load(file).recommend(0)
ofw.save_checkpoint(model, checkpoint), ofw.load_checkpoint(checkpoint).learn(X, y)
pickle.loads(pickle.dumps(model)).forget(0).recommend(0)
""",
}


@pytest.mark.parametrize("what", WITHOUT_NUMBA)
def test_compiled_loops_do_without_numba(what):
    assert heavy_after(WITHOUT_NUMBA[what], "{'numba', 'llvmlite'}") == []
