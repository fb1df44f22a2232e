"""
Clicks, as they happen
======================

A stream of (person, song). Nobody says how much they like anything; they play it, or not. Each play
is ranked before it is learned, so the scores are honest, and the model can recommend after each.
"""

import matplotlib.pyplot as plt
import numpy as np

import onlinefw as ofw

rng = np.random.default_rng(0)
kinds = np.array(["blues", "folk", "jazz", "opera", "rock", "techno"])
tastes = rng.dirichlet(np.full(6, 0.3), size=400).cumsum(axis=1)  # of each person
who = rng.integers(400, size=16_000)
which = (tastes[who] < rng.random((16_000, 1))).sum(axis=1).clip(max=5)
number = rng.zipf(1.3, size=16_000) % 40
plays = [[f"p{i}", f"{kinds[k]}-{n}"] for i, k, n in zip(who, which, number, strict=True)]

model = ofw.FrankWolfeRecommender()
ranked = ofw.evaluate.progressive_ranking(model, plays)
print(f"among the 10 best: {ranked.scores(10, since=0.3)['recall']:.0%} of the songs")

# %%
# What is popular is the guess to beat: of the songs that a person has not played, the ten that were
# played most so far. A play that repeats, or of a song that nobody had played, is not ranked.

counts, had, popular = {}, {}, np.full(len(plays), np.nan)
for t, (person, song) in enumerate(plays):
    mine = had.setdefault(person, set())
    if song in counts and song not in mine:
        better = sum(n > counts[song] for one, n in counts.items() if one not in mine)
        popular[t] = better < 10
    counts[song] = counts.get(song, 0) + 1
    mine.add(song)

windows = ranked.windows(20)
until = windows["until"] + 1
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(until, windows["recall"], color="#1f5fa8", label="onlinefw")
axes.plot(
    until,
    [np.nanmean(part) for part in np.split(popular, 20)],
    color="0.6",
    label="what is popular",
)
axes.set(xlabel="plays seen", ylabel="share among the 10 best", ylim=(0, None))
axes.legend(frameon=False)

# %%
# What to recommend, and why: what somebody has played adds up to the score. None is all the rest.

songs, scores = model.recommend("p10", n=3)
print("for p10:", *songs)
items, contributions = model.because("p10", songs[0], n=5)

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.barh([str(item) for item in items], contributions, color="#1f5fa8")
axes.invert_yaxis()
axes.set(xlabel=f"what it adds to the score of {songs[0]}, {scores[0]:.2f}")

# %%
# Somebody who is not in the model, and stays out of it.

print("after jazz-3 and jazz-9:", *model.recommend_for(["jazz-3", "jazz-9"], n=3)[0])
plt.show()
