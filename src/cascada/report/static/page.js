// Shows what a study found. Text goes in as text, never as markup: names may be anything.
"use strict";

const WIDE = new Set(["history", "network", "parallel"]);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function element(name, text, attributes) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  return made;
}

function fill(id, children) {
  document.getElementById(id).replaceChildren(...children);
}

function colours(printing) {
  const night = dark.matches && !printing;
  const ink = night ? "#d8d8d8" : "#333333";
  const line = night ? "#3a4048" : "#e2e2e2";
  return {
    "font.color": ink, "xaxis.color": ink, "yaxis.color": ink, "xaxis.gridcolor": line, "yaxis.gridcolor": line,
    "legend.font.color": ink, "title.font.color": ink,
  };
}

function repaint(printing) {
  for (const plot of document.querySelectorAll(".plot")) {
    if (plot.data) Plotly.relayout(plot, colours(printing));
  }
}

function draw(figures) {
  const place = document.getElementById("figures");
  const known = new Map([...place.children].map((child) => [child.dataset.id, child]));
  for (const { id, alt, figure } of figures) {
    let holder = known.get(id);
    if (!holder) {
      holder = element("figure", null, { "data-id": id });
      if (WIDE.has(id)) holder.className = "wide";
      holder.append(element("div", null, { class: "plot", role: "img" }), element("figcaption"));
      place.append(holder);
    }
    known.delete(id);
    const plot = holder.firstChild;
    plot.setAttribute("aria-label", alt);
    holder.lastChild.textContent = alt;
    const settings = { responsive: true, displaylogo: false, displayModeBar: "hover" };
    Plotly.react(plot, figure.data, figure.layout, settings).then(() => Plotly.relayout(plot, colours(false)));
  }
  for (const gone of known.values()) gone.remove();
}

function shown(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)).toString() : String(value);
}

function table(trials) {
  const head = element("thead");
  const row = element("tr");
  row.append(...trials.columns.map((name) => element("th", name, { scope: "col" })));
  head.append(row);
  const body = element("tbody");
  for (const values of trials.rows) {
    const line = element("tr", null, values[0] - 1 === trials.best ? { class: "best" } : {});
    line.append(...values.map((value) => element("td", shown(value))));
    body.append(line);
  }
  fill("trials", [head, body]);
}

function show(data) {
  document.title = `${data.name} · cascada`;
  document.getElementById("name").textContent = data.name;
  fill("facts", data.facts.map(([label, value]) => {
    const pair = element("div");
    pair.append(element("dt", label), element("dd", value, { "data-fact": label, class: value === "refuted" ? "refuted" : "" }));
    return pair;
  }));
  fill("words", data.words.map((text) => element("p", text)));
  fill("assumptions", data.assumptions.map((text) => element("li", text)));
  fill("evidence", data.evidence.map((text) => element("p", text)));
  table(data.trials);
  document.getElementById("versions").textContent =
    Object.entries(data.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  document.getElementById("command").textContent = data.command || "";
  document.getElementById("command").hidden = !data.command;
  draw(data.figures);
}

dark.addEventListener("change", () => repaint(false));
window.addEventListener("beforeprint", () => repaint(true));
window.addEventListener("afterprint", () => repaint(false));

const embedded = document.getElementById("data");
if (embedded) show(JSON.parse(embedded.textContent));
