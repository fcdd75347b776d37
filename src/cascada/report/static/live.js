// The live page: what the server sends as runs arrive. Runs are shown at once; what takes long to compute says after
// which run it was computed.
"use strict";

const PATIENCE = 15000; // milliseconds without a sign of life, of which the server gives one every 5 seconds
const AGAIN = 1000; // milliseconds before the next try, where the browser gives up trying
const UNSEEN = 30000; // milliseconds after which a page that nobody sees lets go of the server

const study = new URLSearchParams(window.location.search).get("study");
const statusLine = document.getElementById("status");
const computedLine = document.getElementById("computed");

let source = null;
let heard = 0; // when the server was last heard of
let hiddenSince = null;
let chosen = study; // or the only study of the store
let about = null; // what the study is: columns, objective, sense
let runs = []; // all rows
let past = null; // the history figure without later runs
let state = { message: null, computing: false };
let after = null; // the run after which the figures were computed
const waiting = new Set(); // plots to be drawn

// ---- figures, one after the other, so that runs that arrive meanwhile are shown meanwhile

let busy = false;

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
  if (plot.isConnected) drawPlot(plot, false);
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
  const complete = runs.filter((row) => row[1] === "complete" && row[about.objective] !== null);
  const values = complete.map((row) => row[about.objective]);
  const x = complete.map((row) => row[0]);
  const names = about.columns.slice(2, 2 + about.controls);
  const settings = (row) => names.map((name, i) => `${escaped(name)} = ${Number(row[2 + i].toPrecision(5))}`).join(", ");
  let best = null;
  const soFar = values.map((value) => {
    best = best === null || about.sign * value > about.sign * best ? value : best;
    return best;
  });
  Object.assign(figure.data[0], { x, y: values, text: complete.map(settings) });
  Object.assign(figure.data[1], { x, y: soFar });
  const range = (figure.layout.yaxis || {}).range;
  if (range && values.length) { // runs outside of it came later
    const edge = 0.05 * (range[1] - range[0]);
    const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    figure.layout.yaxis.range = [low < range[0] ? low - edge : range[0], high > range[1] ? high + edge : range[1]];
  }
  return { ...past, figure };
}

function drawHistory() {
  const now = historyNow();
  if (!now) return;
  const holder = holderOf("history");
  const plot = holder.firstChild;
  plot.setAttribute("aria-label", now.alt);
  write(holder.lastChild, now.alt);
  given.set(plot, now.figure);
  drawSoon(plot, true);
}

// ---- what is said of all that

function say() {
  const lost = source === null || source.readyState !== EventSource.OPEN;
  write(statusLine, lost && heard ? "Connection lost, trying again." : state.message || (heard ? "Live." : "Connecting."));
  statusLine.classList.toggle("trouble", (lost && heard > 0) || Boolean(state.message));
  if (chosen === null) return;
  const newer = state.computing ? (after === null ? "The gap and the figures are being computed." : " Newer ones are being computed.") : "";
  write(computedLine, (after === null ? "" : `Figures ${afterRun(after)}.`) + newer);
}

function afterRun(run) {
  return run ? `after run ${run}` : "before the first run";
}

function showStudies(studies) {
  const nav = document.getElementById("studies");
  document.body.classList.toggle("index", chosen === null);
  nav.replaceChildren(...studies.map((name) => {
    const link = element("a", name, { href: `/?${new URLSearchParams({ study: name })}` });
    if (name === chosen) link.setAttribute("aria-current", "page");
    return link;
  }));
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
    for (const row of data.rows) runs[row[0] - 1] = row;
    showFacts(data.facts);
    if (data.about) showFacts([["gap", "…"], ["the gap is", "…"]]);
    putRows(data.rows, data.best);
    drawHistory();
  },
  judged(data) {
    showJudgement(data, afterRun(data.after));
  },
  figures(data) {
    after = data.after;
    past = data.figures.find(({ id }) => id === "history") || past;
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
  const query = chosen === null ? "" : `?${new URLSearchParams({ study: chosen })}`;
  const mine = new EventSource(`/events${query}`);
  source = mine;
  mine.addEventListener("open", () => { heard = Date.now(); say(); });
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    say();
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (mine === source) connect(); }, AGAIN);
  });
  for (const [kind, receive] of Object.entries(RECEIVE)) {
    mine.addEventListener(kind, (event) => {
      if (mine !== source) return;
      heard = Date.now();
      receive(JSON.parse(event.data));
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
    heard = heard && Date.now();
    connect();
    say();
  }
}

window.addEventListener("beforeprint", () => waiting.clear()); // everything was drawn for it
document.addEventListener("visibilitychange", watch);
window.addEventListener("online", watch);
setInterval(watch, 1000);
say();
connect();
requestAnimationFrame(() => setTimeout(loadPlotly));
