// The page of a report and of the live page. Text is inserted as text, never as markup: names may be anything.
"use strict";

const WIDE = new Set(["history", "network", "parallel"]);
const SETTINGS = { responsive: true, displaylogo: false, displayModeBar: "hover" };
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const small = window.matchMedia("(max-width: 639px)");
let printing = false;

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}

function fill(id, children) {
  document.getElementById(id).replaceChildren(...children);
}

function write(node, text) { // only if it differs, which avoids a new layout
  if (node.textContent !== text) node.textContent = text;
}

function named(name) {
  document.title = `${name} · cascada`;
  write(document.getElementById("name"), name);
}

// ---- the summary

function showFacts(facts, note) {
  const place = document.getElementById("facts");
  for (const [label, value] of facts) {
    let pair = [...place.children].find((child) => child.dataset.label === label);
    if (!pair) {
      pair = element("div", null, { "data-label": label });
      pair.append(element("dt", label), element("dd", null, { "data-fact": label }));
      place.append(pair);
    }
    write(pair.firstChild, note ? `${label}, ${note}` : label);
    write(pair.lastChild, value);
    pair.lastChild.classList.toggle("refuted", value === "refuted");
  }
}

function showJudgement(data, note) {
  showFacts(data.facts, note);
  fill("words", data.words.map((text) => element("p", text)));
  fill("assumptions", data.assumptions.map((text) => element("li", text)));
  fill("evidence", data.evidence.map((text) => element("p", text)));
}

function showVersions(versions, command) {
  write(document.getElementById("versions"),
    Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", "));
  write(document.getElementById("command"), command || "");
  document.getElementById("command").hidden = !command;
}

// ---- figures

function folded(text) { // into lines that fit on a phone
  const lines = [""];
  for (const word of (text || "").split(" ")) {
    const longer = `${lines[lines.length - 1]} ${word}`.trim();
    if (longer.length > 40 && lines[lines.length - 1]) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.join("<br>");
}

// Returns a layout for narrow screens: folded titles, and additional height for the legend.
function onPhone(layout, data) {
  const { title, xaxis, height } = layout;
  const entries = data.filter((trace) => trace.showlegend !== false).length;
  const axis = (xaxis || {}).title;
  return {
    ...layout, title: { ...title, text: folded((title || {}).text), x: 0.03, xref: "container", font: { size: 13 } },
    xaxis: { ...xaxis, title: { ...axis, text: folded((axis || {}).text) } },
    height: height + (layout.showlegend === false || entries < 2 ? 0 : 19 * entries),
  };
}

function themed(original, data) {
  const layout = small.matches ? onPhone(original, data) : original;
  const night = dark.matches && !printing;
  const color = night ? "#d8d8d8" : "#333333";
  const axis = { color, gridcolor: night ? "#3a4048" : "#e2e2e2" };
  const axes = Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key)); // a figure may have several panels
  return {
    ...layout, font: { ...layout.font, color }, uirevision: "same", // keeps the reader's zoom when runs arrive
    ...Object.fromEntries(["xaxis", "yaxis", ...axes].map((key) => [key, { ...layout[key], ...axis }])),
    legend: { ...layout.legend, y: 0, yanchor: "bottom", yref: "container", font: { color } }, // below all titles
    title: { ...layout.title, font: { ...(layout.title || {}).font, color } },
  };
}

const figureOf = new WeakMap(); // plot → its original figure: plotly modifies what it draws

function drawPlot(plot) {
  const { data, layout } = structuredClone(figureOf.get(plot));
  Plotly.react(plot, data, themed(layout, data), SETTINGS);
}

function holderOf(id) {
  const place = document.getElementById("figures");
  let holder = [...place.children].find((child) => child.dataset.id === id);
  if (!holder) {
    holder = element("figure", null, { "data-id": id });
    if (WIDE.has(id)) holder.className = "wide";
    holder.append(element("div", null, { class: "plot", role: "img" }), element("figcaption"));
    place.append(holder);
  }
  return holder;
}

// Creates, updates and removes the elements of figures; returns the plots that must be drawn again.
function placeFigures(figures) {
  const changed = [];
  const wanted = new Set(figures.map(({ id }) => id));
  for (const child of [...document.getElementById("figures").children]) {
    if (!wanted.has(child.dataset.id)) child.remove();
  }
  for (const { id, alt, figure } of figures) {
    const holder = holderOf(id);
    const plot = holder.firstChild;
    plot.setAttribute("aria-label", alt);
    write(holder.lastChild, alt);
    if (JSON.stringify(figureOf.get(plot)) === JSON.stringify(figure)) continue;
    figureOf.set(plot, figure);
    changed.push(plot);
  }
  return changed;
}

function repaint() {
  for (const plot of document.querySelectorAll(".plot")) {
    if (window.Plotly && figureOf.has(plot)) drawPlot(plot);
  }
}

function forPaper(now) {
  printing = now;
  repaint();
}

dark.addEventListener("change", repaint);
small.addEventListener("change", repaint);
window.addEventListener("beforeprint", () => forPaper(true));
window.addEventListener("afterprint", () => forPaper(false));

// ---- runs

function shown(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)).toString() : String(value);
}

function beginTable(columns, objective) { // the column of the objective is marked
  const head = element("thead");
  const row = element("tr");
  row.append(...columns.map((name, i) => element("th", i === objective ? `${name} (objective)` : name,
    { scope: "col", ...(i === objective ? { class: "objective" } : {}) })));
  head.append(row);
  fill("trials", [head, element("tbody")]);
}

function put(cell, value) { // texts are left-aligned, numbers are not
  write(cell, shown(value));
  cell.classList.toggle("text", typeof value === "string");
}

function line(values) {
  const made = element("tr");
  for (const value of values) {
    made.append(element("td"));
    put(made.lastChild, value);
  }
  return made;
}

function putRows(rows, best) { // trial n is in row n, counted from 0: trials are never removed
  const body = document.querySelector("#trials tbody");
  const fresh = [];
  for (const values of rows) {
    const before = body.rows[values[0]];
    if (before) values.forEach((value, i) => put(before.cells[i], value));
    else fresh.push(line(values));
  }
  body.append(...fresh);
  const first = body.rows[0];
  document.querySelectorAll("#trials th").forEach((head, i) => { // a heading stands where its values do
    if (first) head.classList.toggle("text", first.cells[i].classList.contains("text"));
  });
  const now = best === null ? undefined : body.rows[best];
  const marked = body.querySelector("tr.best");
  if (marked === (now || null)) return;
  if (marked) marked.classList.remove("best");
  if (now) now.classList.add("best");
}

// ---- a report embeds all its data

const embedded = document.getElementById("data");
if (embedded) {
  const data = JSON.parse(embedded.textContent);
  named(data.name);
  showFacts(data.facts.slice(0, 2));
  showJudgement({ ...data, facts: data.facts.slice(2) });
  beginTable(data.trials.columns, data.objective);
  putRows(data.trials.rows, data.trials.best);
  showVersions(data.versions, data.command);
  for (const plot of placeFigures(data.figures)) drawPlot(plot);
}
