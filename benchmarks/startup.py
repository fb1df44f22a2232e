"""What a new process costs on a machine that has never run it, and what the installation costs.

Processor time (user and system) of all threads: from the start of Python to the end of the first
``learn`` of 100 events, and of the first call of each other verb after it, each in a process of its
own. What numba compiles is compiled anew, in an empty folder.

    python benchmarks/startup.py [--write] [--before CHECKOUT] [--repeat 3] [MODEL ...]

``--before`` measures another checkout (of an earlier commit) in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from table import ROOT, write_table

#: What a process does first, and then each verb alone, in a copy of that process.
MODELS = {
    "ratings": """
X, y = np.column_stack((rng.integers(30, size=100), rng.integers(20, size=100))), rng.random(100)
model = ofw.FrankWolfeMatrixCompletion()
""",
    "clicks": """
X, y = np.column_stack((rng.integers(30, size=100), rng.integers(20, size=100))), None
model = ofw.FrankWolfeRecommender()
""",
    "regressor": """
X = rng.standard_normal((100, 10))
y = X[:, 0] - 2 * X[:, 1] + rng.standard_normal(100)
model = ofw.FrankWolfeRegressor()
""",
    "classifier": """
X = rng.standard_normal((100, 10))
y = np.where(X[:, 0] - 2 * X[:, 1] + rng.standard_normal(100) > 0, "yes", "no")
model = ofw.FrankWolfeClassifier()
""",
}
FIRST = {"classifier": "model.learn(X, y, classes=['no', 'yes'])", "clicks": "model.learn(X)"}
VERBS = {
    "partial_fit": "model.partial_fit(X, y)",
    "predict": "model.predict(X)",
    "recommend": "model.recommend(X[0, 0], n=5)",
    "gap_": "model.gap_",
    "save and load": "ofw.save(model, 'model.ofw'); ofw.load('model.ofw')",
    "save_checkpoint and load": "ofw.save_checkpoint(model, 'c.ofw'); ofw.load_checkpoint('c.ofw')",
}
#: Rows are not recommended, and clicks have no values to predict.
WITHOUT = {
    "regressor": {"recommend"},
    "classifier": {"recommend"},
    "clicks": {"predict"},
}
CHILD = """
import json, os, shutil, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, onlinefw as ofw
rng = np.random.default_rng(0)
{setup}
{first}
seconds = {{"learn": sum(os.times()[:2])}}
for name, verb in {verbs!r}.items():
    shutil.rmtree(os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)  # what the verb before left
    reader, writer = os.pipe()
    if os.fork() == 0:
        start = time.process_time()
        try:
            exec(verb)
            took = time.process_time() - start
        except Exception as error:
            took = repr(error)
        os.write(writer, json.dumps(took).encode())
        os._exit(0)
    os.wait()
    seconds[name] = json.loads(os.read(reader, 9999) or "null")
print(json.dumps(seconds))
"""
DEMO = "ofw demo"


def run(command: list[str], checkout: Path) -> tuple[float, str]:
    """Return the processor time of a command with a checkout's package, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": str(checkout / "src"), "NUMBA_CACHE_DIR": folder + "/n"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            print(f"{command[-1][:60]!r} failed: {done.stderr[-300:]}", file=sys.stderr)
            return float("nan"), ""
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, done.stdout


def of_process(code: str, *words: str) -> list[str]:
    """Return the command that runs some code, with these words after the program's name."""
    return ["-c", f"import sys; sys.argv[1:] = {list(words)!r}; {code}"]


def measured(checkout: Path, models: list[str]) -> dict[str, Any]:
    """Return the processor time of everything that a process may do first."""
    ofw = "from onlinefw.cli import main; main()"
    found: dict[str, Any] = {
        "`import onlinefw`": run(of_process("import onlinefw"), checkout)[0],
        "`ofw --help`": run(of_process(ofw, "--help"), checkout)[0],
    }
    for name in models:
        verbs = {x: verb for x, verb in VERBS.items() if x not in WITHOUT.get(name, ())}
        first = FIRST.get(name, "model.learn(X, y)")
        code = CHILD.format(setup=MODELS[name], first=first, verbs=verbs)
        seconds = json.loads(run(["-c", code], checkout)[1] or "{}")
        for verb in ("learn", *verbs):
            title = "first `learn` of 100" if verb == "learn" else f"then {verb}"
            found[f"{name}: {title}"] = seconds.get(verb)
    found[f"`{DEMO}`"] = run(of_process(ofw, "demo", "--out", "demo"), checkout)[0]
    return found


def prepare(checkout: Path) -> None:
    """Do what an installation does: compile to bytecode, and the loops where there are some."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", checkout / "src"], check=True)
    if (checkout / "src" / "onlinefw" / "native").is_dir():
        run(of_process("from onlinefw.native import library; library()"), checkout)


def build() -> list[str]:
    """Return what is to be said of the build: seconds with nothing kept by zig, and sizes."""
    here = ROOT / "src" / "onlinefw" / "native" / "_build.py"
    code = f"import runpy; f, t = runpy.run_path({str(here)!r})['build'](P('.')); "
    code = "from pathlib import Path as P; " + code + "print(*(x.stat().st_size for x in f))"
    with tempfile.TemporaryDirectory() as kept:
        os.environ["ZIG_GLOBAL_CACHE_DIR"] = kept
        start = time.perf_counter()
        took, printed = run(["-c", code], ROOT)
        wall = time.perf_counter() - start
        del os.environ["ZIG_GLOBAL_CACHE_DIR"]
    sizes = [int(x) for x in printed.split()][:-1]  # without the stamp
    return [
        "",
        f"The loops are compiled in {wall:.1f} s ({took:.1f} s of processor time), nothing kept "
        f"from before; {len(sizes)} libraries have {sum(sizes) / 2**20:.2f} MB in all.",
    ]


def in_words(values: list[Any]) -> str:
    """Return the median of several runs, or that one failed."""
    if any(not isinstance(value, float) or value != value for value in values):
        return "failed"
    return f"{statistics.median(values):.2f}"


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], help="which; all without any")
    parser.add_argument("--write", action="store_true", help="replace startup.md")
    parser.add_argument("--before", type=Path, help="another checkout that stands beside this one")
    parser.add_argument("--repeat", type=int, default=3, help="of how many runs the median is")
    options = parser.parse_args()
    checkouts = {"now": ROOT}
    if options.before is not None:
        checkouts = {"before": options.before.resolve(), **checkouts}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
    for checkout in checkouts.values():
        prepare(checkout)
    for _ in range(options.repeat):
        for name, checkout in checkouts.items():
            runs[name].append(measured(checkout, options.models or list(MODELS)))
    titles = [f"{name}, s" for name in checkouts]
    lines = [f"| what | {' | '.join(titles)} |", f"| --- |{' --- |' * len(titles)}"]
    for what in runs["now"][0]:
        cells = [in_words([one[what] for one in runs[name]]) for name in checkouts]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    lines += build()
    print("\n".join(lines))
    for name in checkouts:
        for what, value in runs[name][0].items():
            if isinstance(value, str):
                print(f"{name}, {what}: {value}", file=sys.stderr)
    if options.write:
        title = "What a new process and an installation cost"
        write_table(Path(__file__).with_suffix(".md"), title, lines, ["scikit-learn", "ziglang"])


if __name__ == "__main__":
    main()
