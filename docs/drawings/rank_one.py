"""A rank-one atom as a picture: stripes across stripes, and what a few dozen of them make."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import onlinefw as ofw

photo = load_sample_image("china.jpg").mean(axis=2)[:416, :624].reshape(104, 4, 156, 4)
photo = photo.mean(axis=(1, 3)) / 255.0
photo -= photo.mean()
ball = ofw.sets.TraceNormBall(0.6 * np.linalg.norm(photo, "nuc"))

theta, first, shown = np.zeros(photo.shape), None, {}
for t in range(1, 101):
    atom = ball.lmo(theta - photo).dense()
    first = atom if first is None else first
    towards = atom - theta
    theta = theta + min(1.0, np.vdot(photo - theta, towards) / np.vdot(towards, towards)) * towards
    if t in (5, 100):
        shown[f"after {t} atoms"] = theta

figure, places = plt.subplots(1, 4, figsize=(10, 2.0), layout="constrained")
pictures = {"the matrix": photo, "the first atom": first / np.abs(first).max(), **shown}
for axes, (title, picture) in zip(places, pictures.items(), strict=True):
    axes.imshow(picture, cmap="gray", vmin=-0.5, vmax=0.5)
    axes.set_title(title, fontsize="medium")
    axes.set_axis_off()
figure.savefig("rank_one.png")
