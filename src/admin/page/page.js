// The live page: what it asks the gateway for, and when it draws what.

import { showOrigins } from "./origins.js";
import { readInk } from "./plot.js";
import { KEPT, drawSoon, drawWith, known, last, limitsOf, planOf, ranked, roomOf, take, view } from "./state.js";
import { makeTotals, showAnswer, showTotals } from "./summary.js";
import { $, ago, clock, code, count, make, planMark, say, seconds, setState, setText, showPlan, visible, whole } from "./text.js";
import { cards, showZones } from "./zones.js";

const LOST_AFTER = 3500; // ms without an event until the connection counts as lost
const ASK_EVERY = 5000; // ms between two requests for totals, origins and settings

// ---------------- keys, file

function showKeys() {
  const { deepest } = last();
  const body = $("keys").tBodies[0];
  $("keys").hidden = deepest.length === 0;
  $("no-keys").hidden = deepest.length > 0;
  while (body.rows.length > deepest.length) body.deleteRow(-1);
  deepest.forEach((key, i) => {
    let row = body.rows[i];
    if (!row) {
      row = body.insertRow();
      const name = make("th", "key");
      name.scope = "row";
      const of = make("small", "muted");
      of.append(make("span"), planMark());
      name.append(code(""), of, make("i", "fill"));
      row.append(name, make("td"), make("td"));
    }
    const [name, depth, oldest] = row.cells;
    const text = visible(key.key);
    setText(name.children[0], text);
    if (name.title !== text) name.title = text;
    const [zone, plan] = name.children[1].children;
    setText(zone, visible(key.zone));
    showPlan(plan, key.plan);
    const room = roomOf(limitsOf(key.zone), planOf(key.zone, key.plan));
    name.children[2].style.setProperty("--part", room ? String(Math.min(1, key.depth / room)) : "0");
    name.children[2].classList.toggle("full", Boolean(room) && key.depth >= room);
    setText(depth, room ? `${whole(key.depth)} / ${count(room)}` : whole(key.depth));
    setText(oldest, seconds(key.oldest_wait));
  });
}

function showFile() {
  const { config } = known;
  if (!config) return;
  const now = last()?.time ?? 0;
  const loaded = Date.parse(config.loaded_at) / 1000;
  const rows = [
    ["name", config.file],
    ["in force since", `${clock(loaded)}, ${ago(now - loaded)}`],
    ["reloads", String(last()?.reload ?? 0)],
    ["state", last()?.error ? "has an error; previous settings in force" : "in force"],
  ];
  const list = $("file");
  rows.forEach(([label, value], i) => {
    let cell = list.children[i * 2 + 1];
    if (!cell) {
      cell = make("dd");
      list.append(make("dt", "", label), cell);
    }
    setText(cell, visible(value));
    cell.classList.toggle("bad", label === "state" && Boolean(last()?.error));
  });
  setText($("settings").querySelector("pre"), config.settings);
  setText($("version"), config.version);
}

// ---------------- notices

/** Shows one notice per kind, with a title and lines; without a title, removes it. */
function notice(kind, title, lines = []) {
  const said = JSON.stringify([title, lines]);
  let it = [...$("notices").children].find((each) => each.dataset.about === kind);
  if (!title) {
    it?.remove();
    return;
  }
  if (!it) {
    it = make("div", "notice");
    it.dataset.about = kind;
    it.dataset.kind = kind === "stopping" ? "wait" : "bad";
    it.setAttribute("role", kind === "stopping" ? "status" : "alert");
    $("notices").append(it);
  }
  if (it.said === said) return;
  it.said = said;
  const list = make("ul");
  list.append(...lines.map((parts) => {
    const line = make("li");
    say(line, ...parts);
    return line;
  }));
  it.replaceChildren(make("b", "", title), ...(lines.length ? [list] : []));
}

function showNotices() {
  const sample = last();
  const error = sample?.error;
  let lines = [];
  if (error) {
    const told = known.config?.error?.problems ?? [];
    // Each sample has only the first problem. The others come from a request to the API.
    const same = told.length > 0 && told[0].line === error.line && told[0].message === error.message;
    const problems = same ? told : [error];
    lines = problems.slice(0, 5).map(({ line, column, message }) => [{ bold: `line ${line}${column ? `, column ${column}` : ""}` }, `: ${visible(message)}`]);
    if (problems.length > 5) lines.push([`and ${problems.length - 5} more`]);
  }
  const file = known.config?.file ?? "The file";
  notice("file", error && `${visible(file)} has an error; the previous settings stay in force`, lines);
  notice("stopping", sample?.stopping && "The gateway is stopping: it accepts no new connections, and the queues drain at their rate.");
}

function showLink() {
  const lost = link.lostSince !== null;
  const stopping = last()?.stopping;
  document.body.classList.toggle("gone", lost && known.samples.length > 0);
  const state = lost ? "rejecting" : !last() ? "waits" : stopping ? "waiting" : "passing";
  setState($("link"), state);
  setText($("link").firstElementChild, lost ? "offline" : !last() ? "connecting" : stopping ? "stopping" : "live");
  notice("gone", lost && (last()
    ? `No data from the gateway since ${clock(last().time)}. The values below are from then. This page keeps trying to connect.`
    : "No data from the gateway. This page keeps trying to connect."));
}

// ---------------- drawing

function draw() {
  showLink();
  if (!last()) return;
  const zones = ranked();
  showNotices();
  showAnswer(zones);
  showTotals(zones);
  showZones(zones);
  showKeys();
  showOrigins();
  showFile();
  for (const card of cards.values()) card.draw();
}

// ---------------- requests to the API

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let asking = false;
async function askAll() {
  if (asking) return;
  asking = true;
  try {
    const [zones, config, origins] = await Promise.all([ask("api/zones"), ask("api/config"), ask("api/origins")]);
    takeSettings(zones.zones);
    known.config = config;
    known.origins = origins.origins;
  } catch {
    // The stream shows whether the gateway is reachable, and the next request comes soon.
  }
  asking = false;
  drawSoon();
}

function takeSettings(zones) {
  const time = last()?.time ?? 0;
  for (const zone of zones) {
    const before = known.settings.get(zone.name);
    zone.said = JSON.stringify([zone.key, zone.rate, zone.algorithm, zone.limits, zone.plans]);
    if (before) {
      const grown = Object.entries(zone.rejections)
        .map(([reason, n]) => [reason, n - (before.rejections[reason] ?? 0)])
        .sort((a, b) => b[1] - a[1])[0];
      if (grown && grown[1] > 0) known.rejectedFor.set(zone.name, grown[0]);
    }
    const room = roomOf(zone.limits);
    const rooms = known.rooms.get(zone.name) ?? [];
    if (rooms.length === 0 || rooms.at(-1)[1] !== room) rooms.push([time, room]);
    known.rooms.set(zone.name, rooms.filter((_, i) => i === rooms.length - 1 || rooms[i + 1][0] > time - KEPT));
  }
  known.settings = new Map(zones.map((zone) => [zone.name, zone]));
}

// ---------------- the stream

const link = { source: null, heard: Date.now(), lostSince: null, again: 500, retry: null };

function heard() {
  link.heard = Date.now();
  link.again = 500;
  const wasLost = link.lostSince !== null;
  link.lostSince = null;
  if (wasLost) askAll();
}

function lost() {
  link.lostSince ??= Date.now();
  drawSoon();
}

function connect() {
  clearTimeout(link.retry);
  link.source?.close();
  link.heard = Date.now();
  const since = last()?.seq;
  const source = new EventSource(since === undefined ? "api/live" : `api/live?since=${since}`);
  link.source = source;
  source.addEventListener("history", ({ data }) => {
    heard();
    JSON.parse(data).samples.forEach(take);
    drawSoon();
  });
  source.addEventListener("sample", ({ data }) => {
    heard();
    const sample = JSON.parse(data);
    const before = last();
    take(sample);
    const changed = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
    const healthy = (it) => it.origins.map((origin) => [origin.name, origin.healthy]);
    if (!before || sample.reload !== before.reload || changed(sample.error, before.error) || changed(healthy(sample), healthy(before))) askAll();
    drawSoon();
  });
  source.addEventListener("error", () => {
    lost();
    // The browser reconnects by itself, except after a response that is not a stream.
    if (source.readyState === EventSource.CLOSED) retryLater();
  });
}

function retryLater() {
  clearTimeout(link.retry);
  link.retry = setTimeout(() => connect(), link.again);
  link.again = Math.min(5000, link.again * 2);
}

/** Detects a dead connection that looks open, as after sleep: no events arrive. */
function watch() {
  const silent = Date.now() - link.heard;
  if (silent < LOST_AFTER) return;
  lost();
  if (silent > 2 * LOST_AFTER) connect();
}

// ---------------- start

drawWith(draw);
makeTotals();
readInk();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readInk();
  drawSoon();
});
addEventListener("resize", drawSoon);
document.addEventListener("visibilitychange", () => {
  watch();
  drawSoon();
});
addEventListener("online", () => connect());
for (const input of document.querySelectorAll("input[name=range]")) {
  if (input.checked) view.range = Number(input.value);
  input.addEventListener("change", () => {
    view.range = Number(input.value);
    drawSoon();
  });
}
$("find").addEventListener("input", ({ target }) => {
  view.find = target.value.trim().toLowerCase();
  drawSoon();
});
$("more").addEventListener("click", () => {
  view.all = true;
  drawSoon();
});
setInterval(watch, 1000);
setInterval(() => {
  if (!document.hidden && link.lostSince === null) askAll();
}, ASK_EVERY);
connect();
askAll();
