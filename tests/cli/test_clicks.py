"""``ofw fit clicks`` and what its model is asked."""

import json

import numpy as np
import pytest

from onlinefw import FrankWolfeRecommender, load, save

from .running import ofw, ofw_json, ofw_says, refusal


def events(n=700, users="u{}", items="song {}", seed=0):
    """Two kinds of people, each with songs of their own."""
    rng = np.random.default_rng(seed)
    who = rng.integers(40, size=n)
    what = np.where(rng.random(n) < 0.9, 2 * rng.integers(15, size=n) + who % 2,
                    rng.integers(30, size=n))  # fmt: skip
    return [(users.format(a), items.format(b)) for a, b in zip(who, what, strict=True)]


def written(path, pairs, header="user,item"):
    path.write_text("\n".join([header, *(",".join(pair) for pair in pairs)]) + "\n")
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clicks")
    pairs = events()
    summary = ofw_json(
        "fit", "clicks", written(folder / "a.csv", pairs), "-o", folder / "m.ofw",
    )  # fmt: skip
    return folder / "m.ofw", pairs, summary


def test_the_model_is_that_of_python(fitted):
    path, pairs, summary = fitted
    model, other = load(path), FrankWolfeRecommender()
    ranks = other.learn(pairs)
    assert model.users_.tolist() == other.users_.tolist()
    np.testing.assert_array_equal(model.predict(pairs), other.predict(pairs))
    ranked = ranks[~np.isnan(ranks)]
    assert summary["rows learned"] == len(pairs)
    assert summary["progressive"]["rows"] == ranked.size
    assert summary["progressive"]["recall"] == np.mean(ranked <= 10)


def test_numbers_stay_numbers_and_later_text_makes_all_of_them_text(tmp_path):
    numbers = events(300, "{}", "{}")
    ofw_says("fit", "clicks", written(tmp_path / "a.csv", numbers), "-o", tmp_path / "a.ofw")
    assert load(tmp_path / "a.ofw").users_.dtype == np.int64
    mixed = [*numbers, ("ann", "7")]
    written(tmp_path / "b.csv", mixed)
    ofw_says("fit", "clicks", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "b.ofw")
    model = load(tmp_path / "b.ofw")
    assert "ann" in model.users_.tolist() and numbers[0][0] in model.users_.tolist()


def test_only_ratings_that_are_high_count(tmp_path):
    lines = ["reader,title,stars", "ann,dune,5", "ann,emma,2", "bob,dune,4", "bob,ulysses,5"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    fit = ("fit", "clicks", tmp_path / "a.csv", "--user", "reader", "--item", "title")
    ofw_says(*fit, "--rating", "stars", "--at-least", "4", "-o", tmp_path / "m.ofw")
    assert load(tmp_path / "m.ofw").items_.tolist() == ["dune", "ulysses"]
    said = refusal(*fit, "--rating", "stars", "-o", tmp_path / "n.ofw")
    assert "--rating goes with --at-least" in said


@pytest.mark.parametrize("option", [("--radius", "3"), ("--epochs", "2"), ("--loss", "square")])
def test_options_of_other_kinds_are_refused(tmp_path, option):
    data = written(tmp_path / "a.csv", events(10))
    assert "not for clicks" in refusal("fit", "clicks", data, "-o", tmp_path / "m.ofw", *option)


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(tmp_path, fitted):
    path, pairs, _ = fitted
    first = written(tmp_path / "a.csv", pairs[:300])
    both = written(tmp_path / "both.csv", pairs)
    checkpoint = tmp_path / "c.ckpt"
    ofw_says("fit", "clicks", first, "--checkpoint", checkpoint, "-o", tmp_path / "m.ofw")
    both.rename(first)  # the file has grown
    ofw_says("fit", "clicks", first, "--resume", checkpoint, "-o", tmp_path / "m.ofw")
    np.testing.assert_array_equal(
        load(tmp_path / "m.ofw").predict(pairs), load(path).predict(pairs)
    )


def test_rows_held_out_and_a_test_file_are_ranked(tmp_path):
    pairs = events(1500)
    data, test = (
        written(tmp_path / "a.csv", pairs),
        written(tmp_path / "t.csv", events(200, seed=1)),
    )
    told = ofw_json("fit", "clicks", data, "--test-fraction", "0.2", "--test", test,
                    "-o", tmp_path / "m.ofw")  # fmt: skip
    for name in ("held out", "test file"):
        score = told[name]
        # Ten of thirty songs, of which people like fifteen: by chance a third.
        assert score["rows"] and 0.35 < score["recall"] <= 1.0 and score["ndcg"] <= score["recall"]


# Recommending -------------------------------------------------------------------------------------


def test_recommendations_for_one_for_many_and_for_somebody_new(fitted, tmp_path):
    path, pairs, _ = fitted
    model, user = load(path), pairs[0][0]
    items, scores = model.recommend(user, 3)
    told = json.loads(ofw_says("recommend", path, "--user", user, "-n", "3", "--json"))
    assert [one["item"] for one in told] == items.tolist()
    np.testing.assert_allclose([one["score"] for one in told], scores)
    users = tmp_path / "users.txt"
    users.write_text(f"{user}\n\nnever seen\n", encoding="utf-8")
    lines = ofw_says("recommend", path, "--users", users, "-n", "2").splitlines()
    assert lines[0] == "user,rank,item,score" and len(lines) == 5
    assert [line.split(",")[2] for line in lines[1:3]] == items[:2].tolist()
    had = ["song 1", "song 3"]
    told = json.loads(ofw_says("recommend", path, "--had", ",".join(had), "-n", "2", "--json"))
    assert [one["item"] for one in told] == model.recommend_for(had, 2)[0].tolist()


def test_names_with_commas_are_in_quotes(tmp_path):
    pairs = [(user, f"{film}, The") for user, film in events(80, items="Film {}")]
    model = FrankWolfeRecommender().fit(pairs)
    save(model, tmp_path / "m.ofw")
    had = [pairs[0][1], pairs[1][1]]
    quoted = ", ".join(f'"{film}"' for film in had)
    told = json.loads(ofw_says("recommend", tmp_path / "m.ofw", "--had", quoted, "--json"))
    assert [one["item"] for one in told] == model.recommend_for(had)[0].tolist()


def test_candidates_and_items_to_leave_out(fitted, tmp_path):
    path, pairs, _ = fitted
    user = pairs[0][0]
    candidates, exclude = tmp_path / "c.txt", tmp_path / "e.txt"
    candidates.write_text("song 1\nsong 2\nno such song\n")
    exclude.write_text("song 1\n")
    said = ofw_says("recommend", path, "--user", user, "--seen", "--candidates", candidates,
                    "--exclude", exclude)  # fmt: skip
    assert [line.split("\t")[0] for line in said.splitlines()] == ["song 2"]


def test_because_adds_up_to_the_score(fitted):
    path, pairs, _ = fitted
    user = pairs[0][0]
    item, score = (x[0] for x in load(path).recommend(user, 1))
    said = json.loads(
        ofw_says("recommend", path, "--user", user, "--because", item, "-n", "2", "--json")
    )
    assert said[-1]["item"] is None
    assert sum(one["contribution"] for one in said) == pytest.approx(score, rel=1e-5)


def test_somebody_unknown_gets_what_is_popular_and_is_told(fitted):
    path, _, _ = fitted
    result = ofw("recommend", path, "--user", "never seen", "-n", "1")
    assert result.exit_code == 0 and "is new to the model" in result.stderr
    assert result.stdout.startswith("song ")


def test_what_cannot_be_answered_is_refused_in_one_line(fitted):
    path, pairs, _ = fitted
    assert "say whom to recommend to" in refusal("recommend", path)
    assert "in one way" in refusal("recommend", path, "--user", "u1", "--had", "song 1")
    said = refusal("recommend", path, "--user", pairs[0][0], "--because", "no such song")
    assert "has not seen the item 'no such song'" in said
    assert "'no such song'" in refusal("recommend", path, "--had", "no such song")


def test_nothing_left_is_said(tmp_path):
    data = written(tmp_path / "a.csv", [("ann", "tea"), ("bob", "tea")])
    ofw_says("fit", "clicks", data, "-o", tmp_path / "m.ofw")
    result = ofw("recommend", tmp_path / "m.ofw", "--user", "ann")
    assert result.exit_code == 0 and result.stdout == ""
    assert "nothing is left to recommend to ann" in result.stderr


# Other commands -----------------------------------------------------------------------------------


def test_pairs_are_predicted_with_their_scores(fitted, tmp_path):
    path, pairs, _ = fitted
    asked = [*pairs[:3], ("never seen", "song 1"), (pairs[0][0], "no such song")]
    result = ofw("predict", path, written(tmp_path / "p.csv", asked))
    got = [float(line.rpartition(",")[2]) for line in result.stdout.splitlines()[1:]]
    np.testing.assert_allclose(got[:4], load(path).predict(asked[:4]))
    assert np.isnan(got[4]) and "2 rows with a user (1) or item (1)" in result.stderr


def test_inspect_and_report_speak_of_users_items_and_ranks(fitted, tmp_path):
    path, _, _ = fitted
    told = ofw_json("inspect", path)
    assert told["users"] == 40 and told["items"] == 30 and told["progressive"]["at"] == 10
    assert next(iter(told["most popular"].values())) == max(load(path).popularity_.values())
    ofw_says("report", path, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "A model of 40 users and 30 items" in page and "What is popular" in page
    assert "items found among the best 10" in page and "% found" in page
