"use strict";
(async () => {
const $ = id => document.getElementById(id);
// The record and the drawings are compressed in the page.
async function unpacked(element) {
  const signs = atob(element.textContent), packed = new Uint8Array(signs.length);
  for (let place = 0; place < signs.length; place++) packed[place] = signs.charCodeAt(place);
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}
const data = JSON.parse(await unpacked($("data")));
const drawings = new Map(await Promise.all([...document.querySelectorAll(".drawing")].map(async one => [one, await unpacked(one.querySelector("script"))])));
const ACTING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const visible = text => String(text).replace(ACTING, sign => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"));

// Elements are made of text, never of HTML: names of a dump are a stranger's.
function el(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter(one => one !== "").map(one => one instanceof Node ? one : visible(one)));
  return made;
}
function number(value) { return value >= 99.5 ? value.toFixed(0) : String(Number(value.toPrecision(3))); }
function bytes(value) {
  if (value === null || value === undefined) return "";
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return `${number(value)} ${unit}`;
    value /= 1024;
  }
}
function duration(value) {
  if (value === null || value === undefined) return "";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]]) if (value >= size) return `${number(value / size)} ${unit}`;
  return `${number(value * 1e9)} ns`;
}
const base = path => path.split(/[\\/]/).pop();
const place = line => `${base(line.path)}:${line.line}`;

// The state is the address: a link shows the very view.
const state = { g: "0", n: "", t: "nodes", q: "", s: "", v: "", k: "", at: "" };
const start = { ...state };
function read() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(state)) state[key] = parameters.get(key) ?? start[key];
  if (!data.graphs[state.g]) state.g = "0";
}
function write(changes) {
  if (Object.entries(changes).every(([key, value]) => state[key] === value)) return;
  Object.assign(state, changes);
  const parameters = new URLSearchParams(Object.entries(state).filter(([key, value]) => value !== start[key]));
  history.replaceState(null, "", "#" + parameters);
}

// What belongs together in the graph that is shown: elements by node, nodes by name.
let graph, known, elements, shownKernel;
const zooms = {};
function index() {
  known = new Map();
  const add = (name, node) => { known.has(name) || known.set(name, new Set()); known.get(name).add(node); };
  for (const one of graph.nodes) {
    for (const name of [one.node, one.top, ...one.writes, ...one.fx]) add(name, one.node);
    for (const number of one.sources) add(place(graph.sources[number]), one.node);
  }
  for (const one of graph.buffers) for (const node of one.readers) add(one.buffer, node);
  for (const one of graph.kernels) for (const node of one.nodes) add(one.name, node);
}
const boxes = () => document.querySelectorAll(`.drawing[data-graph="${state.g}"] [data-name]`);
const ofName = name => known.get(name) ?? new Set();
function belongs(element, nodes) { for (const node of nodes) { elements.has(node) || elements.set(node, new Set()); elements.get(node).add(element); } }
function mark(style, nodes) {
  document.querySelectorAll("." + style).forEach(one => one.classList.remove(style));
  for (const node of nodes) for (const one of elements.get(node) ?? []) one.classList.add(style);
}
function follows(element, nodes, name) {
  belongs(element, nodes);
  element.classList.toggle("on", hasAny(nodes, ofName(state.n)));
  element.addEventListener("mouseenter", () => mark("near", nodes));
  element.addEventListener("mouseleave", () => mark("near", []));
  if (name) element.addEventListener("click", event => { if (!String(getSelection())) { event.stopPropagation(); choose(name); } });
}

// Of a long list the first rows are drawn, and more where it is scrolled to the last of them, or one is chosen.
const AT_ONCE = 100, lists = new Map();
const hasAny = (nodes, chosen) => [...nodes].some(node => chosen.has(node));
function list(body, items, nodesOf, nameOf, made) {
  for (const set of elements.values()) for (const each of set) if (body.contains(each)) set.delete(each);
  body.replaceChildren();
  const draw = until => body.append(...items.slice(body.childElementCount, until).map(made));
  const more = () => draw(body.childElementCount + AT_ONCE);
  const row = (name, nodes) => {
    const itself = items.findIndex(item => nameOf(item) === name);
    const place = itself < 0 ? items.findIndex(item => hasAny(nodesOf(item), nodes)) : itself;
    if (place >= body.childElementCount) draw(place + AT_ONCE);
    return body.children[place];
  };
  lists.set(body.closest(".rows, .scroll"), { all: () => draw(), more, row });
  more();
}
document.addEventListener("scroll", ({ target }) => { if (target.scrollTop + 2 * target.clientHeight > target.scrollHeight) lists.get(target)?.more(); }, true);
addEventListener("beforeprint", () => lists.forEach(one => one.all()));

function openGraph() {
  graph = data.graphs[state.g];
  if (!graph) return;
  elements = new Map(); shownKernel = null;
  $("graphs").value = state.g;
  index();
  $("missing").textContent = visible(graph.missing.join("; "));
  showDrawing(); lines(); bodies(); kernelList(); table(); choose(state.n, true);
}

// A drawing is text until it is shown: the whole one of a network in training has thousands of shapes.
function parsed(drawing) {
  const shapes = drawing.querySelector(".view");
  if (!shapes.firstChild) shapes.innerHTML = drawings.get(drawing);
  const buffers = new Set(graph.buffers.map(one => one.buffer));
  for (const box of drawing.querySelectorAll("[data-name]")) {
    const { name, nodes } = box.dataset;
    if (nodes) known.set(name, new Set(nodes.split(" ")));
    if (!buffers.has(name)) belongs(box, ofName(name));
  }
}

// The drawing scrolls as any page does; it is dragged, and zoomed about its middle.
function view() { return document.querySelector(".drawing:not([hidden]) .view"); }
function showDrawing() {
  const all = [...document.querySelectorAll(".drawing")];
  const mine = all.filter(one => one.dataset.graph === state.g);
  const whole = state.v === "all" && mine.length > 1 ? "1" : "0";
  for (const one of all) one.hidden = one.dataset.graph !== state.g || one.dataset.whole !== whole;
  parsed(view().parentNode);
  $("whole").hidden = mine.length < 2;
  $("whole").setAttribute("aria-pressed", String(whole === "1"));
  zoom(zooms[state.g + whole] ?? null);
}
function zoom(scale) {
  const pane = view(), svg = pane?.querySelector("svg");
  if (!svg) return;
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const before = svg.clientWidth / width || 1;
  scale = Math.min(3, Math.max(0.08, scale ?? Math.min(1, Math.max(0.75, (pane.clientWidth - 14) / width))));
  const x = (pane.scrollLeft + pane.clientWidth / 2) / before, y = (pane.scrollTop + pane.clientHeight / 2) / before;
  svg.setAttribute("width", width * scale); svg.setAttribute("height", height * scale);
  pane.scrollLeft = x * scale - pane.clientWidth / 2; pane.scrollTop = y * scale - pane.clientHeight / 2;
  const key = state.g + pane.parentNode.dataset.whole, isNew = !(key in zooms);
  zooms[key] = scale;
  if (isNew) { into(pane, pane.querySelector(".ip-node"), true); pane.scrollTop = 0; }
}
const scaleNow = () => zooms[state.g + view()?.parentNode.dataset.whole] ?? 1;
function fit() {
  const pane = view(), [, , width, height] = pane.querySelector("svg").getAttribute("viewBox").split(" ").map(Number);
  zoom(Math.min(1, (pane.clientWidth - 14) / width, (pane.clientHeight - 14) / height));
}
function into(container, element, always) {
  if (!container || !element) return;
  const outer = container.getBoundingClientRect(), inner = element.getBoundingClientRect();
  if (!always && inner.top >= outer.top && inner.bottom <= outer.bottom && inner.left >= outer.left && inner.right <= outer.right) return;
  container.scrollTop += inner.top + Math.min(inner.height, outer.height) / 2 - outer.top - outer.height / 2;
  if (container.classList.contains("view")) container.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}

// Three panes: lines of the user's, what nodes compute, the text of a kernel; decisions stand at what they are about.
const SIGNS = { missed: "! ", hazard: "! ", passed: "+ ", analysis: "- " };
function marks(decisions) {
  const alike = new Map(); // of one cause the first is in words, and the others are counted
  for (const one of decisions) if (one.kind === "missed" || one.kind === "hazard") {
    const key = one.cause ? `${one.topic} ${one.cause}` : one.text;
    alike.has(key) ? alike.get(key).push(one) : alike.set(key, [one]);
  }
  return [...alike.values()].map(([one, ...others]) => el("span", { class: `mark ${one.kind}`, title: one.changes.join("\n") || null },
    SIGNS[one.kind] + one.text + (others.length ? ` (and ${others.length} alike)` : "")));
}
function lines() {
  const rows = [];
  let file = null;
  graph.sources.forEach((source, number) => {
    if (source.path !== file) rows.push(el("div", { class: "file", title: visible(source.path) }, base(file = source.path)));
    const nodes = ofName(place(source));
    const decisions = graph.decisions.filter(one => one.sources.length === 1 && one.sources[0] === number);
    const row = el("div", { class: "row" }, el("span", { class: "no" }, String(source.line)), source.code, ...marks(decisions));
    follows(row, nodes, place(source));
    rows.push(row);
  });
  if (!rows.length) rows.push(el("div", { class: "row plain" }, "no lines of yours are recorded for this graph"));
  $("lines").querySelector(".rows").replaceChildren(...rows);
}
function bodies() {
  const of = new Map();
  for (const one of graph.decisions) if (one.topic !== "fusion") for (const node of one.nodes) { of.has(node) || of.set(node, []); of.get(node).push(one); }
  list($("bodies").querySelector(".rows"), graph.nodes, one => [one.node], one => one.node, one => {
    const head = [el("b", {}, one.node), ` ${one.does}`, one.writes.length ? ` → ${one.writes.join(", ")}` : "", one.top !== one.node ? ` in ${one.top.length > 40 ? one.top.slice(0, 38) + "…" : one.top}` : ""];
    const text = one.body.length ? "\n" + one.body.join("\n") : one.kernel ? `\n${one.kernel}(${one.reads.join(", ")})` : "";
    const row = el("div", { class: "row" }, ...head, text, ...marks(of.get(one.node) ?? []));
    follows(row, new Set([one.node]), one.node);
    return row;
  });
}
function kernelList() {
  $("kernels").replaceChildren(...graph.kernels.map(one => el("option", { value: one.name }, one.name)));
  const first = [...graph.kernels].filter(one => one.source).sort((a, b) => (b.seconds ?? b.bytes ?? 0) - (a.seconds ?? a.bytes ?? 0))[0] ?? graph.kernels[0];
  kernel(graph.kernels.some(one => one.name === state.k) ? state.k : first?.name);
}
const TOKEN = /(\/\/.*|#.*)|("[^"\n]*"|'[^'\n]*')|\b(\d[\w.+]*)|\b(for|if|else|while|return|def|import|from|in|auto|const|void|float|double|bool|int|int32_t|int64_t|static_cast|extern|tl|constexpr)\b/g;
function coloured(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const kind = match[1] ? "ip-c" : match[2] ? "ip-s" : match[3] ? "ip-n" : "ip-k";
    parts.push(text.slice(end, match.index), el("span", { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}
function kernel(name) {
  const pane = $("kernel").querySelector(".rows"), one = graph.kernels.find(each => each.name === name);
  if (!one) return list(pane, [""], () => [], () => null, () => el("div", { class: "row plain" }, "this graph has no kernel"));
  if (shownKernel === name) return;
  shownKernel = name; $("kernels").value = name;
  if (!one.source) return list(pane, [one], () => one.nodes, () => one.name, () => {
    const row = el("div", { class: "row" }, `${one.name}: ${one.does}, a function of a library; its text is not in the dump`);
    follows(row, new Set(one.nodes), one.name);
    return row;
  });
  const of = new Map(one.lines.map(each => [each.line, each.nodes]));
  const decided = graph.decisions.filter(each => each.lines && each.kernels[0] === name);
  const rows = one.source.split("\n").flatMap((text, number) => [
    ...marks(decided.filter(each => each.lines[0] === number + 1)).map(sign => ({ sign, nodes: [] })),
    { text, number, nodes: of.get(number + 1) ?? [] }]);
  list(pane, rows, row => row.nodes, () => null, ({ sign, text, number, nodes }) => {
    if (sign) return el("div", { class: "row plain" }, sign);
    const row = el("div", { class: nodes.length ? "row" : "row plain", title: nodes.join(", ") || null }, el("span", { class: "no" }, String(number + 1)), ...coloured(text));
    if (nodes.length) follows(row, new Set(nodes), nodes[0]);
    return row;
  });
}

// What is chosen: everything of it is marked, and each pane goes there.
function choose(name, quiet) {
  const nodes = name ? ofName(name) : new Set();
  const buffer = graph.buffers.find(one => one.buffer === name);
  if (name && !nodes.size && !buffer) name = "";
  write({ n: name });
  document.body.classList.toggle("chosen", Boolean(name));
  const first = graph.nodes.find(one => nodes.has(one.node));
  const itself = graph.kernels.find(one => one.name === name);
  const wanted = itself ?? graph.kernels.find(one => nodes.has(first?.node) && one.nodes.includes(first.node));
  if (wanted) kernel(wanted.name);
  mark("on", nodes);
  for (const box of boxes()) box.classList.toggle("on", Boolean(name) && (box.dataset.name === name || (!buffer && box.classList.contains("on"))));
  about(name, nodes, buffer, itself);
  if (!name) return;
  const lines = $("lines").querySelector(".rows"), rows = $("table").parentNode;
  into(lines, lines.querySelector(".on"), false);
  for (const [pane, list] of lists) { const row = list.row(name, nodes); if (pane !== rows || !quiet) into(pane, row, false); }
  into(view(), [...boxes()].find(box => view().contains(box) && box.classList.contains("on")), false);
}
function about(name, nodes, buffer, itself) {
  const box = $("about");
  box.hidden = !name;
  if (!name) return box.replaceChildren();
  const facts = [];
  const fact = (title, text) => text && facts.push(el("dt", {}, title), el("dd", {}, text));
  const rows = graph.nodes.filter(one => nodes.has(one.node));
  const list = (items, most = 12) => { const all = [...new Set(items)]; return all.slice(0, most).join(", ") + (all.length > most ? ` and ${all.length - most} more` : ""); };
  if (buffer) {
    fact("layout", `${buffer.role} ${buffer.layout} ${buffer.format}`); fact("bytes", bytes(buffer.bytes));
    fact("written by", buffer.producer ?? ""); fact("read by", list(buffer.readers));
    fact("remarks", buffer.remarks.join("; "));
  } else {
    if (rows.length > 1) fact("nodes", list(rows.map(one => one.node)));
    fact("does", list(rows.map(one => one.does))); fact("loops", list(rows.map(one => one.loops).filter(one => one !== "-"), 4));
    fact("reads", list(rows.flatMap(one => one.reads))); fact("writes", list(rows.flatMap(one => one.writes)));
    fact("kernel", list(rows.map(one => one.kernel), 4));
    if (itself) { fact("kind", itself.does); fact("bytes", bytes(itself.bytes)); }
    const seconds = itself ? itself.seconds : new Set(rows.map(one => one.top)).size === 1 ? rows[0]?.seconds : null;
    fact("takes", seconds === null || seconds === undefined ? "" : `${duration(seconds)}${graph.profile ? ` of a call of ${duration(graph.profile.call)}` : ""}`);
  }
  const mine = graph.decisions.filter(one => buffer ? one.subject.split(", ").includes(name) : one.nodes.some(node => nodes.has(node)));
  const worst = mine.filter(one => one.kind === "missed" || one.kind === "hazard");
  for (const one of worst.slice(0, 6)) fact(one.topic ?? one.kind, one.text + (one.changes.length ? `; what changes it: ${one.changes[0]}` : ""));
  if (!buffer) fact("FX nodes", list(rows.flatMap(one => one.fx)));
  if (mine.length > Math.min(worst.length, 6)) fact("decided", `${mine.length} decisions in all: the table has them`);
  box.replaceChildren(el("h3", {}, name), el("dl", {}, ...facts));
}

// Tables: a column has a title, the value that it sorts by, and its text where that is another.
const column = (title, value, options = {}) => ({ title, value, ...options });
const seconds = column("time", row => row.seconds, { text: row => duration(row.seconds), number: true });
const TABLES = {
  nodes: { rows: () => graph.nodes, name: row => row.node, columns: [
    column("node", row => row.node, { name: true }), column("does", row => row.does), column("fused into", row => row.top === row.node ? "" : row.top),
    column("loops", row => row.loops), column("writes", row => row.writes.join(", ")), column("reads", row => row.reads.join(", ")), seconds,
    column("kernel", row => row.kernel), column("from", row => row.sources.map(one => place(graph.sources[one])).join(", "))] },
  kernels: { rows: () => graph.kernels, name: row => row.name, columns: [
    column("kernel", row => row.name, { name: true }), column("kind", row => row.does), seconds, column("bytes", row => row.bytes, { text: row => bytes(row.bytes), number: true }),
    column("launches", row => row.launches, { number: true }), column("nodes", row => row.nodes.length, { number: true }), column("which", row => row.nodes.join(", "))] },
  buffers: { rows: () => graph.buffers, name: row => row.buffer, columns: [
    column("buffer", row => row.buffer, { name: true }), column("role", row => row.role), column("layout", row => row.layout), column("format", row => row.format),
    column("bytes", row => row.bytes, { text: row => bytes(row.bytes), number: true }), column("written by", row => row.producer ?? ""),
    column("read by", row => row.readers.join(", ")), column("remarks", row => row.remarks.join("; "))] },
  decisions: { rows: () => graph.decisions.filter(one => one.topic !== "fusion"), name: row => row.nodes[0], columns: null },
  fusion: { rows: () => graph.decisions.filter(one => one.topic === "fusion"), name: row => row.nodes[0], columns: null },
};
const decisionColumns = [
  column("about", row => row.subject, { name: true }), column("kind", row => row.topic ?? ""), column("remark", row => row.kind, { style: row => row.kind }),
  column("decision", row => row.short), seconds, column("bytes", row => row.bytes, { text: row => bytes(row.bytes), number: true }), column("cause", row => row.cause),
  column("changed by", row => row.changes.join("; or "))];
TABLES.decisions.columns = TABLES.fusion.columns = decisionColumns;
const shownText = (one, row) => String((one.text ?? one.value)(row) ?? "");
function table() {
  if (!TABLES[state.t]) state.t = "nodes";
  const { rows, columns, name } = TABLES[state.t];
  $("tabs").replaceChildren(...Object.keys(TABLES).map(key => el("button", { role: "tab", "aria-selected": String(key === state.t), onclick: () => { write({ t: key, s: "" }); table(); } }, `${key} ${TABLES[key].rows().length}`)));
  $("filter").value = state.q;
  const shown = columns.filter(one => rows().some(row => shownText(one, row)));
  const sorting = shown.find(one => one.title === state.s.replace(/^-/, "")), down = state.s.startsWith("-");
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const mine = rows().filter(row => { const text = shown.map(one => shownText(one, row)).join(" ").toLowerCase(); return words.every(word => text.includes(word)); });
  if (sorting) mine.sort((a, b) => {
    const [x, y] = [sorting.value(a), sorting.value(b)], sign = down ? -1 : 1;
    if (x === null || x === undefined || x === "") return 1;
    if (y === null || y === undefined || y === "") return -1;
    return sign * (sorting.number ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
  });
  $("table").tHead.replaceChildren(el("tr", {}, ...shown.map(one => el("th", { class: one.number ? "no" : "", "aria-sort": one === sorting ? (down ? "descending" : "ascending") : null },
    el("button", { onclick: () => { write({ s: one === sorting ? (down ? "" : "-" + one.title) : one.number ? "-" + one.title : one.title }); table(); } }, one.title + (one === sorting ? (down ? " ↓" : " ↑") : ""))))));
  const nodesOf = row => row.nodes && !row.source ? new Set(row.nodes) : ofName(name(row));
  list($("table").tBodies[0], mine, nodesOf, name, row => {
    const one = el("tr", {}, ...shown.map(one => el("td", { class: one.name ? "name" : one.number ? "no" : one.style ? one.style(row) : shownText(one, row).length < 30 ? "short" : "", title: one.name ? visible(shownText(one, row)) : null }, shownText(one, row))));
    follows(one, nodesOf(row), name(row));
    return one;
  });
  $("count").textContent = mine.length === rows().length ? "" : `${mine.length} of ${rows().length}`;
}

// Search: exact names first, then beginnings, then what has the word in it.
function found(word) {
  const hits = [];
  const add = (name, text) => {
    const [whole, key] = [`${name} ${text}`.toLowerCase(), name.toLowerCase()];
    const rank = key === word ? 0 : key.startsWith(word) ? 1 : key.includes(word) ? 2 : whole.includes(word) ? 3 : 9;
    if (rank < 9) hits.push([rank, name, text]);
  };
  for (const one of graph.nodes) add(one.node, `${one.does} ${one.writes.join(" ")} ${one.fx.join(" ")}`);
  for (const one of graph.buffers) add(one.buffer, `${one.role} ${one.layout}`);
  for (const one of graph.kernels) add(one.name, one.does);
  for (const one of graph.sources) add(place(one), one.code);
  return hits.sort((a, b) => a[0] - b[0]).slice(0, 14);
}
let at = 0;
function search() {
  const word = $("search").value.trim().toLowerCase(), hits = word ? found(word) : [];
  at = Math.min(at, Math.max(hits.length - 1, 0));
  $("hits").hidden = !word;
  $("hits").replaceChildren(...(hits.length ? hits.map(([, name, text], number) => el("li", { role: "option", class: number === at ? "at" : "", onmousedown: event => { event.preventDefault(); take(name); } }, el("b", {}, name), `  ${text}`)) : [el("li", {}, "nothing has this in its name")]));
  return hits;
}
function take(name) { $("hits").hidden = true; $("search").value = name; choose(name); }
$("search").addEventListener("input", () => { at = 0; search(); });
$("search").addEventListener("blur", () => { $("hits").hidden = true; });
$("search").addEventListener("keydown", event => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") { at = Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)); search(); event.preventDefault(); }
  else if (event.key === "Enter") { const hits = search(); if (hits[at]) take(hits[at][1]); }
  else if (event.key === "Escape") { $("search").value = ""; $("search").blur(); }
});

$("graphs").addEventListener("change", event => { write({ g: event.target.value, n: "", k: "" }); openGraph(); });
$("kernels").addEventListener("change", event => { write({ k: event.target.value }); kernel(event.target.value); });
$("filter").addEventListener("input", event => { write({ q: event.target.value }); table(); });
$("in").addEventListener("click", () => zoom(scaleNow() * 1.25));
$("out").addEventListener("click", () => zoom(scaleNow() / 1.25));
$("fit").addEventListener("click", fit);
$("whole").addEventListener("click", unfold);
function unfold() { write({ v: state.v === "all" ? "" : "all" }); showDrawing(); choose(state.n, true); }
for (const pane of document.querySelectorAll(".view")) {
  let from = null;
  const boxAt = event => event.target.closest("[data-name]")?.dataset.name;
  pane.addEventListener("mouseover", event => mark("near", ofName(boxAt(event))));
  pane.addEventListener("mouseleave", () => mark("near", []));
  pane.addEventListener("click", event => { if (boxAt(event)) choose(boxAt(event)); });
  pane.addEventListener("pointerdown", event => { if (event.button === 0) from = [event.clientX + pane.scrollLeft, event.clientY + pane.scrollTop]; });
  pane.addEventListener("pointermove", event => { if (!from) return; pane.classList.add("drag"); pane.scrollTo(from[0] - event.clientX, from[1] - event.clientY); });
  for (const name of ["pointerup", "pointerleave"]) pane.addEventListener(name, () => { from = null; pane.classList.remove("drag"); });
  pane.addEventListener("wheel", event => { if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(scaleNow() * Math.exp(-event.deltaY / 300)); } }, { passive: false });
}
function step(by) {
  const names = graph.nodes.map(one => one.node), chosen = names.findIndex(name => ofName(state.n).has(name));
  choose(names[Math.max(0, Math.min(names.length - 1, state.n ? chosen + by : 0))]);
}
document.addEventListener("keydown", event => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = { "/": () => $("search").focus(), j: () => step(1), k: () => step(-1), "+": () => zoom(scaleNow() * 1.25), "-": () => zoom(scaleNow() / 1.25), 0: fit, a: unfold, Escape: () => choose("") }[event.key];
  if (act) { event.preventDefault(); act(); }
});
// The section that was chosen is where one is while it stands at the top, or at the end of the page is seen; else the one read.
const links = [...document.querySelectorAll("nav a")], sections = links.map(link => $(link.hash.slice(4)));
const topOf = section => section.getBoundingClientRect().top;
function here() {
  const named = sections.find(one => one.id === state.at), isEnd = scrollY + innerHeight >= document.body.scrollHeight - 2;
  const isNamed = named && topOf(named) >= 0 && topOf(named) < (isEnd ? innerHeight : 90);
  const now = isNamed ? named : sections.findLast(one => topOf(one) < innerHeight / 3) ?? sections[0];
  links.forEach((link, number) => link.classList.toggle("here", sections[number] === now));
  write({ at: now === sections[0] ? "" : now.id });
}
function go() { if (state.at) $(state.at)?.scrollIntoView(); here(); }
document.querySelector("nav").addEventListener("click", event => {
  const link = event.target.closest("a");
  if (link) { event.preventDefault(); write({ at: link.hash.slice(4) }); go(); }
});
addEventListener("scroll", here, { passive: true });
addEventListener("hashchange", () => { read(); openGraph(); go(); });
read();
openGraph();
go();
document.body.classList.add("ready");
})();
