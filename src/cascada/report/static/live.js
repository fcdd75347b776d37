// The live page: what the server sends as runs arrive. Runs are shown at once; what takes long to compute says from
// how many of them it was computed.
"use strict";

const PATIENCE = 15000; // milliseconds without a sign of life, of which the server gives one every 5 seconds
const AGAIN = 1000; // milliseconds before the next try, where the browser gives up trying
// Milliseconds after which a page that nobody sees lets go of the server: browsers allow six connections to it, for all
// pages together.
const UNSEEN = 2000;
const REST = 3; // times as long as drawing the history took, before it is drawn again: the page is for its reader

const study = new URLSearchParams(window.location.search).get("study");
const statusLine = document.getElementById("status");
const computedLine = document.getElementById("computed");

let source = null;
let heard = 0; // when the server was last heard of
let lost = false; // the connection; not when the page itself let go of it
let last = ""; // the id of the last message that had one: what came before it need not come again
let hiddenSince = null;
let chosen = study; // or the only study of the store
let about = null; // what the study is: columns, objective, sense
let runs = []; // all rows
let past = null; // the history figure without later runs
let state = { message: null, computing: false };
let after = null; // so many complete runs the figures were computed from
const waiting = new Set(); // plots to be drawn

// ---- figures, one after the other, so that runs that arrive meanwhile are shown meanwhile

let busy = false;
let due = null; // the timer that puts runs into the history
let rested = 0; // when the history may be drawn again

function drawSoon(plot, first) {
  if (first) {
    const others = [...waiting];
    waiting.clear();
    for (const one of [plot, ...others]) waiting.add(one);
  } else waiting.add(plot);
  if (!busy && window.Plotly) {
    busy = true;
    requestAnimationFrame(() => setTimeout(drawNext));
  }
}

function drawNext() {
  const [plot] = waiting;
  busy = false;
  if (!plot || !window.Plotly) return;
  waiting.delete(plot);
  if (plot.isConnected) {
    const started = performance.now();
    drawPlot(plot);
    if (plot.parentNode.dataset.id === "history") rested = performance.now() + REST * (performance.now() - started);
  }
  if (waiting.size) {
    busy = true;
    setTimeout(drawNext);
  }
}

function loadPlotly() { // after the first paint: it is large
  const script = element("script", null, { src: document.body.dataset.plotly });
  script.addEventListener("load", () => { for (const plot of [...waiting]) drawSoon(plot); });
  script.addEventListener("error", () => setTimeout(loadPlotly, AGAIN));
  document.body.append(script);
}

function escaped(text) { // plotly takes some of HTML for markup
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function historyNow() { // the figure, with the runs that came since it was computed
  if (!past || !about) return null;
  const figure = structuredClone(past.figure);
  const complete = runs.filter((row) => row[about.objective] !== null);
  const values = complete.map((row) => row[about.objective]);
  const x = complete.map((row) => row[0]);
  const names = about.columns.slice(2, 2 + about.controls);
  const settings = (row) => names.map((name, i) => `${escaped(name)} = ${Number(row[2 + i].toPrecision(5))}`).join(", ");
  let best = null;
  const soFar = values.map((value) => {
    best = best === null || about.sign * value > about.sign * best ? value : best;
    return best;
  });
  if (values.length) { // the figure may be from before, and say that there is none
    delete figure.layout.annotations;
    for (const axis of ["xaxis", "yaxis"]) figure.layout[axis] = { ...figure.layout[axis], visible: true };
  }
  Object.assign(figure.data[0], { x, y: values, text: complete.map(settings) });
  Object.assign(figure.data[1], { x, y: soFar });
  const range = figure.layout.yaxis.range;
  if (range && values.length) { // runs outside of it came later
    const edge = 0.05 * (range[1] - range[0]);
    const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    figure.layout.yaxis.range = [low < range[0] ? low - edge : range[0], high > range[1] ? high + edge : range[1]];
  }
  return { ...past, figure };
}

function putHistory() { // the plot, to be drawn
  clearTimeout(due);
  due = null;
  const now = historyNow();
  const holder = holderOf("history");
  const plot = holder.firstChild;
  plot.setAttribute("aria-label", now.alt);
  write(holder.lastChild, now.alt);
  given.set(plot, now.figure);
  return plot;
}

function drawHistory() { // with all runs that came until then
  if (due !== null || !past || !about) return;
  due = setTimeout(() => drawSoon(putHistory(), true), Math.max(rested - performance.now(), 0));
}

function dropBound() { // all but the runs and the best of them; and the range that was chosen to show it
  past = { ...past, figure: { ...past.figure, data: past.figure.data.slice(0, 2) } };
  const { range, ...yaxis } = past.figure.layout.yaxis;
  past.figure.layout = { ...past.figure.layout, yaxis };
}

// ---- what is said of all that

function say() {
  write(statusLine, lost && heard ? "Connection lost, trying again." : state.message || (heard ? "Live." : "Connecting."));
  statusLine.classList.toggle("trouble", (lost && heard > 0) || Boolean(state.message));
  if (chosen === null) return;
  const newer = state.computing ? (after === null ? "The gap and the figures are being computed." : " Newer ones are being computed.") : "";
  write(computedLine, (after === null ? "" : `Figures ${fromRuns(after)}.`) + newer);
}

function fromRuns(count) {
  return count ? `from ${count} complete run${count === 1 ? "" : "s"}` : "before the first run";
}

function showStudies(studies) {
  const nav = document.getElementById("studies");
  document.body.classList.toggle("index", chosen === null);
  const wanted = new Set(studies);
  for (const link of [...nav.children]) if (!wanted.has(link.textContent)) link.remove();
  studies.forEach((name, i) => { // links that are there stay: somebody may be about to follow one
    if (!nav.children[i] || nav.children[i].textContent !== name) {
      const link = element("a", name, { href: `/?${new URLSearchParams({ study: name })}` });
      nav.insertBefore(link, nav.children[i] || null);
    }
    if (name === chosen) nav.children[i].setAttribute("aria-current", "page");
  });
  while (nav.children.length > studies.length) nav.lastChild.remove();
  nav.hidden = studies.length < 2 && chosen !== null;
  if (chosen === null) {
    named(studies.length ? "Studies in this store" : "No study in this store yet");
    if (studies.length === 1) { // nothing to choose
      [chosen] = studies;
      connect();
    }
  }
}

// ---- messages

const RECEIVE = {
  alive() {},
  studies: showStudies,
  state(data) { state = data; },
  runs(data) {
    if (data.about) {
      about = data.about;
      runs = [];
      after = null;
      past = { alt: about.alt, figure: about.history };
      beginTable(about.columns);
      showVersions(about.versions, null);
      placeFigures([]);
      fill("words", []);
      fill("assumptions", []);
      fill("evidence", []);
    }
    for (const row of data.rows) runs[row[0]] = row;
    showFacts(data.facts);
    if (data.about && !data.refuted) showFacts([["gap", "…"], ["the gap is", "…"]]);
    if (data.refuted) { // what was computed before does not hold
      fill("words", []);
      dropBound();
    }
    putRows(data.rows, data.best);
    if (data.about) putHistory();
    drawHistory();
  },
  judged(data) {
    showJudgement(data, fromRuns(data.after));
  },
  figures(data) {
    after = data.after;
    past = data.figures.find(({ id }) => id === "history") || past;
    clearTimeout(due);
    due = null;
    const now = historyNow();
    for (const plot of placeFigures(data.figures.map((one) => (one.id === "history" && now ? now : one)))) drawSoon(plot);
  },
};

function connect() {
  if (source) source.close();
  if (chosen !== null) {
    document.body.classList.remove("index");
    named(chosen);
  }
  const query = new URLSearchParams({ ...(chosen === null ? {} : { study: chosen }), ...(last ? { last } : {}) });
  const mine = new EventSource(`/events?${query}`);
  source = mine;
  mine.addEventListener("open", () => {
    heard = Date.now();
    lost = false;
    say();
  });
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    lost = true;
    say();
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (mine === source) connect(); }, AGAIN);
  });
  for (const [kind, receive] of Object.entries(RECEIVE)) {
    mine.addEventListener(kind, (event) => {
      if (mine !== source) return;
      heard = Date.now();
      receive(JSON.parse(event.data));
      last = event.lastEventId || last;
      say();
    });
  }
}

function watch() { // a laptop that slept may wait for an answer for hours
  if (document.hidden) hiddenSince = hiddenSince || Date.now();
  else hiddenSince = null;
  if (hiddenSince && source && Date.now() - hiddenSince > UNSEEN) {
    source.close();
    source = null;
  } else if (!hiddenSince && (source === null || (heard && Date.now() - heard > PATIENCE))) {
    lost = lost || source !== null;
    heard = heard && Date.now();
    connect();
    say();
  }
}

window.addEventListener("beforeprint", () => {
  if (!window.Plotly) return; // all of them are still to be drawn
  if (due !== null) putHistory();
  waiting.clear();
}, true); // before page.js draws everything
document.addEventListener("visibilitychange", watch);
window.addEventListener("online", watch);
setInterval(watch, 1000);
document.body.classList.toggle("index", chosen === null);
say();
connect();
requestAnimationFrame(() => setTimeout(loadPlotly));
