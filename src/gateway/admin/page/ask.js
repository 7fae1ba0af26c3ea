// What the page asks the API for, beside the stream.

import { askLimited } from "./limited.js";
import { take } from "./ownfinds.js";
import { KEPT, drawSoon, known, last, roomOf } from "./state.js";
import { call } from "./token.js";

const WITHIN = 15_000; // ms that the counts of servers are compared over

async function get(path) {
  const answer = await call(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let asking = false;
let again = false;

/** Asks for settings and totals. Asked while an answer is under way, it asks once more after it. */
export async function askAll() {
  again = asking;
  if (asking) return;
  asking = true;
  const takes = [
    ["api/zones", ({ zones }) => takeSettings(zones)],
    ["api/config", (config) => (known.config = config)],
    ["api/origins", ({ origins }) => takeOrigins(origins)],
    ["api/routes", (routes) => (known.routes = routes)],
    ["api/find", ({ experiments }) => experiments.forEach(take)],
  ];
  if (last()?.store) takes.push(["api/store", ({ store }) => (known.store = store)]);
  const answers = await Promise.allSettled(takes.map(([path]) => get(path)));
  // After one that failed: the stream shows whether the gateway is reachable, and the next request comes soon.
  answers.forEach(({ status, value }, i) => status === "fulfilled" && takes[i][1](value));
  asking = false;
  drawSoon();
  if (again) askAll();
  else askLimited();
}

function takeOrigins(origins) {
  const at = performance.now();
  known.origins = origins;
  known.before.push({ at, origins });
  while (at - known.before[0].at > WITHIN) known.before.shift();
}

function takeSettings(zones) {
  const time = last()?.time ?? 0;
  for (const zone of zones) {
    zone.said = JSON.stringify([zone.key, zone.rate, zone.algorithm, zone.new_keys, zone.limits, zone.plans]);
    const room = roomOf(zone.limits);
    const rooms = known.rooms.get(zone.name) ?? [];
    if (rooms.length === 0 || rooms.at(-1)[1] !== room) rooms.push([time, room]);
    known.rooms.set(zone.name, rooms.filter((_, i) => i === rooms.length - 1 || rooms[i + 1][0] > time - KEPT));
  }
  known.settings = new Map(zones.map((zone) => [zone.name, zone]));
}
