// Who is limited: the keys of a zone with the most rejections, requests or waiting time.

import { visit } from "./address.js";
import { keyRow, showKey } from "./keys.js";
import { drawSoon, known, last, sum, view } from "./state.js";
import { $, count, percent, seconds, setText, visible, whole } from "./text.js";
import { call } from "./token.js";

const SHOWN = 8;
/** Sums of waits, short enough for a column. */
const waited = (s) => (s < 1 ? seconds(s) : `${count(s < 99.5 ? Number(s.toFixed(1)) : Math.round(s))} s`);
const WITHIN = { 60: "in the last minute", 600: "in the last 10 minutes" };
const OF = { rejections: (key) => key.rejections, requests: (key) => key.requests, wait: (key) => key.wait_seconds };

const found = { time: -Infinity, zone: null };

/** The zone that is shown: the chosen one, or the one that rejected most just now, or the first. */
function zoneShown() {
  const now = last();
  if (!now) return null;
  if (view.zone !== null && now.zone.has(view.zone)) return view.zone;
  // With many zones this takes time, and the reader wants it to stay.
  if (now.time - found.time >= 5 || !now.zone.has(found.zone)) Object.assign(found, { time: now.time, zone: busiest(now.zones) });
  return found.zone;
}

function busiest(zones) {
  const minute = known.samples.slice(-60);
  const rejected = (name) => sum(minute.map((sample) => sample.zone.get(name)?.rejected ?? 0));
  const ranked = zones.map((zone) => [zone.name, rejected(zone.name), zone.depth]);
  ranked.sort((a, b) => b[1] - a[1] || b[2] - a[2]);
  return ranked[0]?.[0] ?? null;
}

let asked = 0;

/** Asks for the keys that the reader wants to see. */
export async function askLimited() {
  const zone = zoneShown();
  if (zone === null) return;
  const mine = ++asked;
  const want = { zone, sort: view.sort, window: view.window };
  const path = `api/zones/${encodeURIComponent(zone)}/keys?sort=${want.sort}&window=${want.window}&limit=${SHOWN}`;
  let answer = null;
  try {
    const response = await call(path);
    if (response.ok) answer = await response.json();
  } catch {
    // What is shown stays; the stream shows whether the gateway is reachable.
  }
  if (mine !== asked || !answer) return;
  known.heavy = { ...want, ...answer };
  drawSoon();
}

export function showLimited() {
  const zones = last().zones.map((zone) => zone.name);
  $("limited-card").hidden = zones.length === 0;
  const select = $("limited-zone");
  const said = JSON.stringify(zones);
  if (select.said !== said) {
    select.said = said;
    select.replaceChildren(...zones.map((name) => new Option(visible(name), name)));
    select.hidden = zones.length < 2;
  }
  const zone = zoneShown();
  if (document.activeElement !== select && select.value !== zone) select.value = zone;
  for (const button of document.querySelectorAll("#limited thead button")) {
    button.setAttribute("aria-pressed", String(button.value === view.sort));
  }
  if (!known.heavy) return;
  const { sort, window, error } = known.heavy;
  const keys = (known.heavy.keys ?? []).filter((key) => OF[sort](key) > 0).slice(0, SHOWN);
  const body = $("limited").tBodies[0];
  while (body.rows.length > keys.length) body.deleteRow(-1);
  const all = known.heavy.total ?? sum(keys.map(OF[sort]));
  keys.forEach((key, i) => {
    const row = body.rows[i] ?? keyRow(body, 3);
    const share = all > 0 ? Math.min(1, OF[sort](key) / all) : 0;
    const of = [share === 0 ? "" : `${percent(share, 1)} of the zone`, key.depth > 0 ? `${whole(key.depth)} waiting` : "", key.override ? "not as in the file" : ""];
    showKey(row, { ...key, zone: known.heavy.zone }, of.filter(Boolean).join(", "), share, sort === "rejections");
    const [, ...cells] = row.cells;
    [whole(key.rejections), count(key.requests), waited(key.wait_seconds)].forEach((value, n) => setText(cells[n], value));
    cells[0].classList.toggle("bad", key.rejections > 0);
  });
  const off = error > 0 && keys.length > 0 ? `, each at most ${sort === "wait" ? seconds(error) : count(error)} too high` : "";
  setText($("limited-note"), `${keys.length ? "" : "None "}in ${visible(known.heavy.zone)} ${WITHIN[window]}${off}.`);
}

export function startLimited() {
  $("limited-zone").addEventListener("change", ({ target }) => {
    visit(target.value);
    askLimited();
  });
  for (const button of document.querySelectorAll("#limited thead button")) {
    button.addEventListener("click", () => {
      view.sort = button.value;
      askLimited();
      drawSoon();
    });
  }
  for (const input of document.querySelectorAll("input[name=window]")) {
    input.addEventListener("change", () => {
      view.window = Number(input.value);
      askLimited();
    });
  }
}
