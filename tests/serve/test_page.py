"""The live page, in a real browser: Chromium, without a window."""

from __future__ import annotations

import json
import shutil
import time
from urllib.parse import urlsplit

import pytest

from .client import Server
from .helpers import rating, ratings

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no chromium with chromedriver"),
]
HOSTILE = "<script>document.title = 'broken'</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    profile = tmp_path_factory.mktemp("browser")
    # Tests may run as root in a container, where Chromium has neither a sandbox nor much /dev/shm.
    for one in ("headless=new", "no-sandbox", "disable-dev-shm-usage", f"user-data-dir={profile}"):
        options.add_argument(f"--{one}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    browser.set_page_load_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture
def page(browser):
    """Open pages; in the end, nothing went wrong and nothing came from elsewhere."""
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    page = Page(browser)
    yield page
    assert page.console() == []
    assert page.requested_hosts() <= {page.host}
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get("about:blank")  # ends the connection to /events


@pytest.fixture
def served(forks, tmp_path):
    """Start servers, and end them whatever happens."""
    servers = []

    def start(*args):
        servers.append(Server(*args, "--log", tmp_path / "log", forks=forks))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


class Page:
    """What a reader sees and does."""

    def __init__(self, browser):
        self._browser = browser

    def open(self, server, user="", wait="Up to date"):
        self.host = f"127.0.0.1:{server.port}"
        self._browser.get(f"http://{user}{self.host}/")
        self.wait_for("state", lambda text: wait in text)

    def text(self, id_):
        return self.run("return document.getElementById(arguments[0]).innerText", id_)

    def run(self, script, *args):
        return self._browser.execute_script(script, *args)

    def wait_for(self, id_, is_there, seconds=20.0):
        end = time.monotonic() + seconds
        while not is_there(self.text(id_)):
            assert time.monotonic() < end, (id_, self.text(id_), self.console())
            time.sleep(0.05)
        return self.text(id_)

    def ask(self, text):
        self.run("document.getElementById('asked').value = ''")
        self._browser.find_element("id", "asked").send_keys(text + "\n")

    def width(self, pixels):
        size = {"width": pixels, "height": 640, "deviceScaleFactor": 2, "mobile": True}
        self._browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def colours(self, scheme):
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self._browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        style = self.run(
            "const style = getComputedStyle(document.body);"
            "return [style.backgroundColor, style.color]"
        )
        return [sum(map(int, one[4:-1].split(","))) / (3 * 255) for one in style]

    def names(self, selector):
        """What screen readers call the elements that are found."""
        found = self._browser.find_elements("css selector", selector)
        return [one.accessible_name for one in found]

    def console(self):
        """What the browser complains about, but for answers that refuse a question."""
        refused = ("/recommend - Failed to load", "/predict - Failed to load")
        found = [one["message"] for one in self._browser.get_log("browser")]
        return [one for one in found if not any(part in one for part in refused)]

    def requested_hosts(self):
        messages = [
            json.loads(one["message"])["message"] for one in self._browser.get_log("performance")
        ]
        sent = [
            one["params"]["request"]["url"]
            for one in messages
            if one["method"] == "Network.requestWillBeSent"
        ]
        hosts = {urlsplit(url).netloc.split("@")[-1] for url in sent}  # none, of data: and about:
        return hosts - {""}


def test_numbers_and_charts_follow_what_is_learned(server, page):
    page.open(server)
    assert page.text("events") == "0"
    server.ask("POST", "/learn", {"events": [*ratings(0, 1200), {"user": "no item"}]})
    assert page.wait_for("events", lambda text: text != "0") == "1,200"
    assert page.text("refused") == "1"
    page.wait_for("gap", lambda text: text != "-")
    page.wait_for("window", lambda text: float(text) > 0)
    page.wait_for("model", lambda text: "FrankWolfeMatrixCompletion" in text)
    server.ask("POST", "/learn", {"events": ratings(1200, 1300)})
    page.wait_for("events", lambda text: text == "1,300")
    lines = "return [...document.querySelectorAll('svg path:not(.grid)')].map((p) => p.outerHTML)"
    assert len(page.run(lines)) == 4 and all("L" in one for one in page.run(lines)[:2])


def test_a_page_that_is_opened_late_shows_how_it_went(server, page):
    for k in range(3):
        server.ask("POST", "/learn", {"events": ratings(50 * k, 50 * k + 50)})
        time.sleep(1.1)
    page.open(server)
    assert page.run("return points.length") >= 3
    assert page.run("return points[0][1]") < 150


def test_a_user_gets_recommendations_that_stay_new(server, page):
    server.ask("POST", "/learn", {"events": ratings(0, 60)})
    page.open(server)
    page.ask("u1")
    page.wait_for("answer", lambda text: "For u1" in text)
    items = "return [...document.querySelectorAll('#found td:first-child')].map((c) => c.innerText)"
    said = server.ask("POST", "/recommend", {"user": "u1"})[1]["recommendations"]
    best = [one["item"] for one in said]
    assert page.run(items) == best
    server.ask("POST", "/learn", {"events": [rating(100, user="u1", item=best[0])]})
    page.wait_for("found", lambda text: best[0] not in text.split())
    page.ask("nobody")
    assert "nothing is known of the user 'nobody'" in page.wait_for(
        "answer", lambda text: "nobody" in text
    )


def test_ids_that_look_like_html_are_text(server, page):
    events = [*ratings(0, 40), rating(41, user="u1", item="i1"), rating(42, user="u2")]
    events[-1]["item"] = HOSTILE
    events.append(rating(43, user=HOSTILE, item="i2"))
    server.ask("POST", "/learn", {"events": events})
    page.open(server)
    page.ask(HOSTILE)
    assert HOSTILE in page.wait_for("answer", lambda text: "For" in text)
    page.ask("u1")
    page.wait_for("found", lambda text: HOSTILE in text)
    assert page.run("return document.title") == "ofw serve"
    assert page.run("return document.scripts.length") == 1


def test_it_fits_on_a_phone_and_into_the_dark(server, page):
    events = [rating(k, item=f"{k}{'long' * 20}") for k in range(9)]
    server.ask("POST", "/learn", {"events": events})
    page.width(320)
    page.open(server)
    page.ask("u1")
    page.wait_for("model", lambda text: "rank" in text)
    page.wait_for("answer", lambda text: text.startswith(("For", "There is")))
    assert page.run("return document.documentElement.scrollWidth") == 320
    paper, ink = page.colours("light")
    assert paper > 0.9 and ink < 0.3
    paper, ink = page.colours("dark")
    assert paper < 0.2 and ink > 0.8


def test_what_is_used_and_drawn_has_a_name_for_those_who_listen(server, page):
    server.ask("POST", "/learn", {"events": ratings(0, 50)})
    page.open(server)
    page.wait_for("gap", lambda text: text != "-")
    names = page.names("input, button, svg")
    assert {"User", "Recommend"} < set(names) and all(names)
    assert any("squared error" in name and "now" in name for name in names), names
    live = "return [...document.querySelectorAll('[role=status]')].map((e) => e.id)"
    assert page.run(live) == ["state", "answer"]


def test_rows_are_predicted_from_typed_values(served, page):
    server = served("--new", "regression")
    rows = [{"x": {"<b>size": k % 7, "age": k % 3}, "y": 2 * (k % 7)} for k in range(200)]
    server.ask("POST", "/learn", {"events": rows})
    page.open(server)
    page.wait_for("hint", lambda text: "2 numbers" in text and "<b>size, age" in text)
    page.ask("6, 0")
    said = page.wait_for("answer", lambda text: text.startswith("Prediction"))
    row = {"x": [6, 0]}
    expected = server.ask("POST", "/predict", {"rows": [row]})[1]["predictions"][0]
    assert float(said.split()[1]) == pytest.approx(expected, rel=0.01)
    page.ask("6, zero")
    page.wait_for("answer", lambda text: text == '"zero" is no number')


def test_a_browser_with_the_password_sees_everything(served, page, tmp_path):
    (tmp_path / "token").write_text("sesame\n", encoding="utf-8")
    server = served("--new", "matrix", "--token", tmp_path / "token")
    page.open(server, user="me:sesame@")
    page.ask("somebody")
    page.wait_for("answer", lambda text: "learned nothing yet" in text)
