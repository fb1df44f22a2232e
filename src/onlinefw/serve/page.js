
"use strict";
const MOST = 400; // points of a chart; when there are more, every other one is dropped
const byId = (id) => document.getElementById(id);
let points = []; // [time, events, mean score, newest score, certificate]
let current = null; // the point of now, which may be too near the last to be kept
let apart = 1; // seconds between two points
let score = "score";
// An address with a password in it must not be asked; the browser sends the password along anyway.
const at = (path) => new URL(path, location.origin + location.pathname);

// What comes from the model is only ever put in as text.
function element(name, text, parent) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function say(id, text, isBad) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text; // screen readers read what changes
  place.classList.toggle("bad", Boolean(isBad));
}

function shown(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(3)));
}

// Charts ------------------------------------------------------------------------------------------

function drawn(svg, name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  svg.append(made);
}

// Draw lines, each a class and pairs of time and value; the scale begins at 0 if it should.
function chart(id, lines, fromZero) {
  const svg = byId(id), width = svg.clientWidth, height = svg.clientHeight, foot = 20;
  const all = lines.flatMap((line) => line.pairs).filter((pair) => pair[1] !== null);
  svg.replaceChildren();
  if (!all.length || !width) return;
  const times = all.map((pair) => pair[0]), values = all.map((pair) => pair[1]);
  const first = Math.min(...times), last = Math.max(...times);
  const low = fromZero ? 0 : Math.min(...values), high = Math.max(...values);
  const x = (time) => (last > first ? (time - first) / (last - first) : 1) * width;
  const y = (value) => 16 + (1 - (high > low ? (value - low) / (high - low) : 0.5)) * (height - foot - 20);
  for (const value of high > low ? [low, high] : [low]) {
    drawn(svg, "path", { class: "grid", d: `M0 ${y(value)}H${width}` });
    drawn(svg, "text", { x: 0, y: y(value) - 4 }, shown(value));
  }
  for (const { name, pairs } of lines) {
    let path = "";
    for (const [time, value] of pairs) {
      if (value !== null) path += `${path ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    }
    drawn(svg, "path", { class: name, d: path });
  }
  const clock = (time) => new Date(1000 * time).toLocaleTimeString();
  drawn(svg, "text", { x: 0, y: height - 3 }, clock(first));
  drawn(svg, "text", { x: width, y: height - 3, "text-anchor": "end" }, clock(last));
  const range = `from ${shown(low)} to ${shown(high)}, now ${shown(values.at(-1))}`;
  svg.setAttribute("aria-label", `${byId(`${id}-title`).textContent}: ${range}`);
}

// Events a second between points; whoever is forgotten takes events along: that is no rate.
function rates() {
  const rate = (old, one) => Math.max(0, one[1] - old[1]) / Math.max(1e-3, one[0] - old[0]);
  return points.slice(1).map((point, k) => [point[0], rate(points[k], point)]);
}

function draw() {
  const all = current === null || current === points.at(-1) ? points : [...points, current];
  const column = (k) => all.map((point) => [point[0], point[k]]);
  chart("score", [{ name: "two", pairs: column(2) }, { name: "one", pairs: column(3) }], false);
  chart("gaps", [{ name: "one", pairs: column(4) }], true);
  chart("rates", [{ name: "one", pairs: rates() }], true);
}

// What the server tells ---------------------------------------------------------------------------

let before = null;
let newestEvents = -1;

function takeNumbers(now) {
  for (const name of ["events", "refused", "waiting", "window", "progressive", "gap"]) {
    byId(name).textContent = shown(now[name]);
  }
  if (before !== null && now.time > before.time) {
    const rate = Math.max(0, now.events - before.events) / (now.time - before.time);
    byId("rate").textContent = shown(Math.round(rate));
  }
  before = now;
  score = now.score;
  byId("window-name").textContent = `${score}, newest 1000`;
  byId("progressive-name").textContent = `${score}, all events`;
  byId("score-title").textContent = `Score: ${score} before learning`;
  current = [now.time, now.events, now.progressive, now.window, now.gap];
  if (!points.length || now.time - points.at(-1)[0] >= apart * 0.9) points.push(current);
  if (points.length > MOST) {
    points = points.filter((_, k) => k % 2 === 0);
    apart *= 2;
  }
  draw();
  say("state", "Up to date, every second.");
  if (now.events !== newestEvents) {
    newestEvents = now.events;
    if (asked !== null && asked[0] === "recommend") askAgain();
  }
}

function listed(values) {
  const list = document.createElement("dl");
  for (const [name, value] of Object.entries(values)) {
    element("dt", name, list);
    const place = element("dd", null, list);
    if (Array.isArray(value)) place.textContent = value.map(shown).join(", ");
    else if (value !== null && typeof value === "object") place.append(listed(value));
    else place.textContent = shown(value);
  }
  return list;
}

function takeModel({ facts, columns, width }) {
  if (Object.keys(facts).length) byId("model").replaceChildren(listed(facts));
  const hint = byId("hint");
  if (hint && width) {
    const names = columns.join(", ") + (columns.length && columns.length < width ? ", ..." : "");
    hint.textContent = `${width} numbers with commas between them${names ? `: ${names}` : ""}`;
  }
}

const source = new EventSource(at("events"));
source.addEventListener("course", (message) => {
  points = JSON.parse(message.data);
  before = null;
  apart = points.length > 1 ? Math.max(1, (points.at(-1)[0] - points[0][0]) / MOST) : 1;
});
source.addEventListener("model", (message) => takeModel(JSON.parse(message.data)));
source.onmessage = (message) => takeNumbers(JSON.parse(message.data));
source.onerror = () => {
  const gone = source.readyState === EventSource.CLOSED;
  say("state", gone ? "The server does not answer: load this page again." : "Connecting again.", true);
};
addEventListener("resize", draw);

// What the reader asks ----------------------------------------------------------------------------

let asked = null; // verb and text of the newest question
let isAsking = false;

function question(verb, text) {
  if (verb === "recommend") return { user: text, n: 10 };
  const x = text.startsWith("{") ? JSON.parse(text) : text.split(",").map(numberIn);
  return { rows: [{ x }] };
}

function numberIn(text) {
  if (!text.trim() || !Number.isFinite(Number(text))) throw new Error(`"${text.trim()}" is no number`);
  return Number(text);
}

async function answerTo(verb, text) {
  const body = JSON.stringify(question(verb, text));
  const headers = { "content-type": "application/json" };
  const response = await fetch(at(verb), { method: "POST", headers, body });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function showAnswer(verb, text, answer) {
  if (verb === "predict") {
    say("answer", `Prediction: ${shown(answer.predictions[0])}`);
    return;
  }
  const found = answer.recommendations;
  say("answer", found.length ? `For ${text}, the best first:` : `There is nothing new for ${text}.`);
  const rows = found.map(({ item, score }) => {
    const row = document.createElement("tr");
    element("td", item, row);
    element("td", shown(score), row);
    return row;
  });
  byId("found").tBodies[0].replaceChildren(...rows);
  byId("found").hidden = !rows.length;
}

async function askAgain() {
  if (asked === null || isAsking) return;
  const [verb, text] = asked;
  isAsking = true;
  try {
    showAnswer(verb, text, await answerTo(verb, text));
  } catch (error) {
    if (byId("found")) byId("found").hidden = true;
    say("answer", error.message, true);
  }
  isAsking = false;
  if (asked[1] !== text) askAgain();
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  asked = [event.target.dataset.verb, byId("asked").value.trim()];
  askAgain();
});
