// The live page: shows what the server sends as runs arrive. Runs are shown at once; gap and figures, which take longer
// to compute, are labelled with the number of runs they include.
"use strict";

const TIMEOUT = 15000; // milliseconds without a message before reconnecting; the server sends one every 5 seconds
const RETRY = 1000; // milliseconds before a retry if the browser does not retry itself
// Milliseconds after which a hidden page disconnects: browsers allow only six connections to a server over all pages.
const HIDDEN_TIMEOUT = 2000;
const REST = 3; // pause before the history is drawn again, as a multiple of the drawing time: keeps the page responsive

const study = new URLSearchParams(window.location.search).get("study");
const statusLine = document.getElementById("status");
const computedLine = document.getElementById("computed");

let source = null;
let lastReceived = 0; // time of the last message
let lost = false; // whether the connection was lost; false if the page itself closed it
let last = ""; // id of the last message that had one: a new connection resumes after it
let hiddenSince = null;
let chosen = study; // null without one, until the store has exactly one
let about = null; // description of the study: columns, objective, sense
let runs = []; // all rows
let past = null; // the history figure as computed, without later runs
let state = { message: null, computing: false };
let after = null; // number of complete runs that the figures include
const waiting = new Set(); // plots to be drawn

// ---- figures, drawn one by one, so that arriving runs are shown in between

let busy = false;
let due = null; // timer of the next history drawing
let rested = 0; // time at which the history may be drawn again

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
  script.addEventListener("error", () => setTimeout(loadPlotly, RETRY));
  document.body.append(script);
}

function escaped(text) { // plotly interprets some HTML tags
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function isComplete(row) { // with limits, a trial may lack a limited output when its objective is known
  return row[about.objective] !== null && (!about.limits.length || row[1].startsWith("complete"));
}

function isWithin(value, low, high) {
  return (low === null || value >= low) && (high === null || value <= high);
}

function isFeasible(row) { // whether a run satisfies the limits; true if there are none
  return about.limits.every(([i, low, high]) => row[i] !== null && isWithin(row[i], low, high));
}

function isInfeasible(row) { // whether a run breaks a limit; neither is known before the output is measured
  return about.limits.some(([i, low, high]) => row[i] !== null && !isWithin(row[i], low, high));
}

function historyNow() { // the history figure with all runs, also those after it was computed
  if (!past || !about) return null;
  const figure = structuredClone(past.figure);
  const complete = runs.filter(isComplete);
  const values = complete.map((row) => row[about.objective]);
  const x = complete.map((row) => row[0]);
  const names = about.columns.slice(2, 2 + about.controls);
  const settings = (row) => names.map((name, i) => `${escaped(name)} = ${Number(row[2 + i].toPrecision(5))}`).join(", ");
  const feasible = complete.filter(isFeasible);
  let best = null;
  const soFar = feasible.map((row) => {
    const value = row[about.objective];
    best = best === null || about.sign * value > about.sign * best ? value : best;
    return best;
  });
  if (values.length) { // the figure may be older than the first run and have a note that there is none
    delete figure.layout.annotations;
    for (const axis of ["xaxis", "yaxis"]) figure.layout[axis] = { ...figure.layout[axis], visible: true };
  }
  Object.assign(figure.data[0], { x, y: values, text: complete.map(settings) });
  Object.assign(figure.data[1], { x: feasible.map((row) => row[0]), y: soFar });
  if (about.limits.length) {
    const { feasible: dot, infeasible: cross } = about.symbols;
    figure.data[0].marker = { ...figure.data[0].marker, symbol: complete.map((row) => (isInfeasible(row) ? cross : dot)) };
  }
  if (x[x.length - 1] >= 10) figure.layout.xaxis = { ...figure.layout.xaxis, dtick: null }; // as in history.py
  const range = figure.layout.yaxis.range;
  if (range && values.length) { // later runs may be outside of it
    const edge = 0.05 * (range[1] - range[0]);
    const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    figure.layout.yaxis.range = [low < range[0] ? low - edge : range[0], high > range[1] ? high + edge : range[1]];
  }
  return { ...past, figure };
}

function putHistory() { // updates the history figure and returns its plot, which must be drawn
  clearTimeout(due);
  due = null;
  const now = historyNow();
  const holder = holderOf("history");
  const plot = holder.firstChild;
  plot.setAttribute("aria-label", now.alt);
  write(holder.lastChild, now.alt);
  figureOf.set(plot, now.figure);
  return plot;
}

function drawHistory() { // schedules a drawing of the history
  if (due !== null || !past || !about) return;
  due = setTimeout(() => drawSoon(putHistory(), true), Math.max(rested - performance.now(), 0));
}

function dropBound() { // removes the bound and the axis range that was chosen for it
  past = { ...past, figure: { ...past.figure, data: past.figure.data.slice(0, 2) } };
  const { range, ...yaxis } = past.figure.layout.yaxis;
  past.figure.layout = { ...past.figure.layout, yaxis };
}

// ---- status line

function showStatus() {
  write(statusLine, lost && lastReceived ? "Connection lost, trying again." : state.message || (lastReceived ? "Live." : "Connecting."));
  statusLine.classList.toggle("trouble", (lost && lastReceived > 0) || Boolean(state.message));
  if (chosen === null) return;
  const newer = state.computing ? (after === null ? "The gap and the figures are being computed." : " Newer ones are being computed.") : "";
  write(computedLine, (after === null ? "" : `Figures ${fromRuns(after)}.`) + newer);
}

function fromRuns(count) {
  return count ? `from ${count} complete run${count === 1 ? "" : "s"}` : "before the first run";
}

// The studies are links; while no study is chosen, they are the first column of a table.
function showStudies(studies) {
  const nav = document.getElementById("studies");
  document.body.classList.toggle("index", chosen === null);
  if ((nav.querySelector("table") === null) !== (chosen !== null)) nav.replaceChildren(...(chosen === null ? [indexTable()] : []));
  const place = chosen === null ? nav.querySelector("tbody") : nav;
  const wanted = new Set(studies);
  for (const one of [...place.children]) if (!wanted.has(one.dataset.study)) one.remove();
  studies.forEach((name, i) => { // existing links stay: the reader may be about to click one
    if (!place.children[i] || place.children[i].dataset.study !== name) {
      place.insertBefore(chosen === null ? indexRow(name) : linkTo(name), place.children[i] || null);
    }
    if (name === chosen) place.children[i].setAttribute("aria-current", "page");
  });
  while (place.children.length > studies.length) place.lastChild.remove();
  nav.hidden = studies.length < 2 && chosen !== null;
  if (chosen === null) {
    named(studies.length ? "Studies in this store" : "No study in this store yet");
    nav.querySelector("table").hidden = !studies.length;
    if (studies.length === 1) { // show the only study at once
      [chosen] = studies;
      nav.replaceChildren();
      connect();
    }
  }
}

function linkTo(name) {
  return element("a", name, { href: `/?${new URLSearchParams({ study: name })}`, "data-study": name });
}

function indexTable() {
  const head = element("tr");
  head.append(...["study", "runs", "best", "gap", "last event"].map((name) => element("th", name, { scope: "col" })));
  const table = element("table", null, { class: "studies" });
  table.append(element("thead"), element("tbody"));
  table.tHead.append(head);
  return table;
}

function indexRow(name) {
  const row = element("tr", null, { "data-study": name });
  const first = element("td");
  first.append(linkTo(name));
  row.append(first, ...["runs", "best", "gap", "last"].map(() => element("td")));
  return row;
}

let listed = []; // the rows of the table

function showIndex(rows) {
  listed = rows;
  const places = new Map([...document.querySelectorAll("#studies tbody tr")].map((row) => [row.dataset.study, row]));
  for (const { name, runs: count, best, gap, last: at, error } of rows) {
    const row = places.get(name);
    if (!row) continue;
    const texts = error ? ["", "", error, ""] : [count, best, gap, age(at)];
    texts.forEach((text, i) => write(row.cells[i + 1], text));
  }
}

function age(at) { // a time, in seconds since 1970, as people say it
  const seconds = Math.max(Date.now() / 1000 - at, 0);
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    const count = Math.floor(seconds / size);
    if (count) return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

// ---- messages

const RECEIVE = {
  alive() {},
  studies: showStudies,
  index: showIndex,
  state(data) { state = data; },
  runs(data) {
    if (data.about) {
      about = data.about;
      runs = [];
      after = null;
      past = { alt: about.alt, figure: about.history };
      beginTable(about.columns, about.objective);
      showVersions(about.versions, null);
      placeFigures([]);
      fill("words", []);
      fill("assumptions", []);
      fill("evidence", []);
    }
    for (const row of data.rows) runs[row[0]] = row;
    showFacts(data.facts);
    if (data.about && !data.refuted) showFacts([["gap", "…"], ["this is", "…"]]);
    if (data.refuted) { // earlier results are invalid
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
    lastReceived = Date.now();
    lost = false;
    showStatus();
  });
  mine.addEventListener("error", () => {
    if (mine !== source) return;
    lost = true;
    showStatus();
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (mine === source) connect(); }, RETRY);
  });
  for (const [kind, receive] of Object.entries(RECEIVE)) {
    mine.addEventListener(kind, (event) => {
      if (mine !== source) return;
      lastReceived = Date.now();
      receive(JSON.parse(event.data));
      last = event.lastEventId || last;
      showStatus();
    });
  }
}

setInterval(() => { if (chosen === null) showIndex(listed); }, 10000); // ages grow

function watch() { // reconnects when needed: a laptop that slept may have a dead connection
  if (document.hidden) hiddenSince = hiddenSince || Date.now();
  else hiddenSince = null;
  if (hiddenSince && source && Date.now() - hiddenSince > HIDDEN_TIMEOUT) {
    source.close();
    source = null;
  } else if (!hiddenSince && (source === null || (lastReceived && Date.now() - lastReceived > TIMEOUT))) {
    lost = lost || source !== null;
    lastReceived = lastReceived && Date.now();
    connect();
    showStatus();
  }
}

window.addEventListener("beforeprint", () => {
  if (!window.Plotly) return; // nothing can be drawn yet
  if (due !== null) putHistory();
  waiting.clear();
}, true); // before page.js draws everything
document.addEventListener("visibilitychange", watch);
window.addEventListener("online", watch);
setInterval(watch, 1000);
document.body.classList.toggle("index", chosen === null);
showStatus();
connect();
requestAnimationFrame(() => setTimeout(loadPlotly));
