"""The layers of the library, one batch's way down and the Round's way back."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

PURPLE, RED, BLUE = "#7b3fa0", "#d1495b", "#1f5fa8"
WIDTH, HEIGHT, STEP = 10.0, 1.05, 1.75  # of a layer, and from one to the next
TEXT, DOWNWARD, UPWARD = 2.0, 3.0, 7.6  # where words begin, and where arrows are
PLACES = ["host: memory", "cuda: a GPU", "ray: workers"]
LAYERS = [  # name, what it does, what it works with, color
    ("estimator", "checks the data, cuts a stream into batches", ["history", "race"], BLUE),
    ("learner", "plays a round: the paper's box", ["set", "step", "corrective"], BLUE),
    ("objective", "decides: what $F_t$ is, what to ask of the past", ["theta", "loss"], BLUE),
    ("past", "carries out: stores, moves, sums", PLACES, PURPLE),
    ("kernel", "loops over arrays, compiled", [], PURPLE),
]
DOWN = ["X, y", "a batch", "check, add, gradient, move", "append, gradients, move, ...", "arrays"]
BACK = ["coef_, history_, gap_", "a Round", "loss, gradient, gap", "sums", "sums"]


def box(axes, x, y, width, height, color, alpha):
    style = "round,pad=0,rounding_size=0.12"
    axes.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle=style, facecolor=color, alpha=alpha, linewidth=0
        )
    )


def arrow(axes, x, start, end, color):
    style = {"arrowstyle": "-|>", "lw": 2.2, "color": color, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (x, end), (x, start), arrowprops=style)


figure, axes = plt.subplots(figsize=(10, 7), layout="constrained")
for k, (name, what, parts, color) in enumerate(LAYERS):
    top = -STEP * k
    box(axes, 0, top - HEIGHT, WIDTH, HEIGHT, color, 0.12)
    axes.text(0.25, top - HEIGHT / 2, name, color=color, va="center", fontsize=16, weight="bold")
    line = top - (0.3 if parts else HEIGHT / 2)
    axes.text(TEXT, line, what, va="center", fontsize=13)
    x = TEXT
    for part in parts:
        width = 0.5 + 0.115 * len(part)
        box(axes, x, top - 0.92, width, 0.38, color, 0.2)
        axes.text(x + width / 2, top - 0.74, part, ha="center", va="center", fontsize=11)
        x += width + 0.15
    above = top + STEP - HEIGHT  # the lower edge of the layer above
    arrow(axes, DOWNWARD, above, top, RED)
    arrow(axes, UPWARD, top, above, BLUE)
    middle = (above + top) / 2
    axes.text(DOWNWARD + 0.2, middle, DOWN[k], va="center", fontsize=12, color=RED)
    axes.text(UPWARD + 0.2, middle, BACK[k], va="center", fontsize=12, color=BLUE)
axes.text(DOWNWARD, 0.85, "partial_fit", ha="center", va="center", fontsize=13, color=RED)
axes.text(UPWARD, 0.85, "the model", ha="center", va="center", fontsize=13, color=BLUE)
axes.set(xlim=(-0.05, WIDTH + 0.05), ylim=(-4 * STEP - HEIGHT - 0.05, 1.0))
axes.set_axis_off()
figure.savefig("architecture.png")
