// The routes: requests, answers and latency of each, as clients see them.

import { actOnRoutes } from "./act.js";
import { known, recent, sum, total } from "./state.js";
import { $, clock, count, listOf, make, pace, seconds, setText, visible } from "./text.js";

const SHOWN = 12; // routes listed before "Show more"
let all = false;

/** Numbers by class, from numbers by status; those by class stay. */
function classes(statuses) {
  const found = {};
  for (const [status, n] of Object.entries(statuses)) {
    const kind = `${status[0]}xx`;
    found[kind] = (found[kind] ?? 0) + n;
  }
  return found;
}

const paceOf = (name) => {
  const samples = recent();
  return sum(samples.map((sample) => total(sample.routes?.find((route) => route.name === name)?.codes))) / Math.max(1, samples.length);
};

function newRow(body) {
  const row = body.insertRow();
  const name = make("th");
  name.scope = "row";
  const act = make("button", "small", "Act …");
  act.type = "button";
  act.addEventListener("click", () => actOnRoutes(row.of.name, row.of.own));
  name.append(make("code"), make("small", "muted"), act);
  row.append(name, ...["Now", "Requests", "Answers", "p50", "p95", "p99"].map((label) => {
    const cell = make("td");
    cell.dataset.label = label;
    return cell;
  }));
  row.cells[3].classList.add("codes");
  return row;
}

/** In a few words; empty without maintenance. */
const until = (it) => (it ? `in maintenance until ${clock(Date.parse(it.until) / 1000)}, by ${visible(it.by)}` : "");

/** What requests cost, where that is learned, and where it comes from. */
const SOURCES = { quiet: "learned", busy: "learned while busy", median: "as other routes there", none: "nothing learned" };
const costs = (cost) => (cost ? Object.entries(cost.methods).map(([method, it]) =>
  `${visible(method)} costs ${it.cost} (${[Number.isFinite(it.seconds) && seconds(it.seconds), SOURCES[it.source], cost.shadow && "shadow: 1 is charged"].filter(Boolean).join(", ")})`) : []);

/** Where requests of a route go. */
function goes({ refuses, origin, zones, maintenance }) {
  if (maintenance) return `refused: ${until(maintenance)}`;
  if (refuses) return `refused with ${refuses}`;
  return origin ? `to ${visible(origin)}${zones.length ? `, in ${zones.map(visible).join(", ")}` : ""}` : "no route took these";
}

function showCodes(cell, codes, statuses) {
  const said = JSON.stringify(codes);
  if (cell.said === said) return;
  cell.said = said;
  cell.title = listOf(statuses);
  cell.replaceChildren(...Object.entries(codes).filter(([, n]) => n > 0).map(([kind, n]) => {
    const it = make("span", kind === "5xx" ? "bad" : "");
    it.append(make("small", "", visible(kind)), ` ${count(n)}`);
    return it;
  }));
}

export function showRoutes() {
  $("routes-section").hidden = !known.routes;
  if (!known.routes) return;
  const { routes, unrouted, maintenance } = known.routes;
  const rows = routes.map((route) => ({ ...route, now: paceOf(route.name) }));
  rows.sort((a, b) => b.now - a.now || b.requests - a.requests);
  const lost = total(unrouted);
  const none = { name: "no route", origin: "", zones: [], requests: lost, statuses: unrouted, now: null };
  const more = all ? 0 : Math.max(0, rows.length - SHOWN);
  const listed = [...rows.slice(0, rows.length - more), ...(lost > 0 ? [none] : [])];
  const body = $("routes").tBodies[0];
  while (body.rows.length > listed.length) body.deleteRow(-1);
  listed.forEach((route, i) => {
    const row = body.rows[i] ?? newRow(body);
    const [name, now, requests, codes, ...latency] = row.cells;
    setText(name.firstElementChild, visible(route.name));
    name.firstElementChild.dir = "ltr";
    const [, of, act] = name.children;
    setText(of, [goes(route), ...costs(route.cost)].join("; "));
    of.classList.toggle("bad", Boolean(route.maintenance));
    act.hidden = !route.origin;
    // That of all routes is ended for all.
    const isOfAll = JSON.stringify(route.maintenance) === JSON.stringify(maintenance);
    row.of = { name: route.name, own: isOfAll ? undefined : route.maintenance };
    setText(now, route.now === null ? "–" : pace(route.now));
    setText(requests, count(route.requests));
    showCodes(codes, classes(route.statuses), route.statuses);
    ["p50", "p95", "p99"].forEach((q, n) => setText(latency[n], seconds(route.latency?.[q])));
  });
  $("more-routes").hidden = more === 0;
  setText($("more-routes"), `Show ${more} more routes`);
  setText($("routes-count"), [routes.length, until(maintenance)].filter(Boolean).join(", all "));
}

export function startRoutes(drawSoon) {
  $("act-on-routes").addEventListener("click", () => actOnRoutes(undefined, known.routes?.maintenance));
  $("more-routes").addEventListener("click", () => {
    all = true;
    drawSoon();
  });
}
