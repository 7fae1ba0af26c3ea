// The gates of origins: what each lets through, who waits there, and what for.

import { sum } from "./plot.js";
import { RECENT, known, last } from "./state.js";
import { count, ofPlan, pace, short, whole } from "./text.js";

const grow = (all, more) => {
  for (const [name, n] of Object.entries(more)) all.set(name, (all.get(name) ?? 0) + n);
};
const most = (all) => [...all].sort((a, b) => b[1] - a[1])[0]?.[0];

/** The settings of an origin's gate, from /api/origins. */
export const gateSettings = (name) => known.origins.find((origin) => origin.name === name)?.gate ?? null;

/** The gate of an origin now, and over the last seconds; null without one. */
export function gateNow(name) {
  const gate = last()?.gates.get(name);
  if (!gate) return null;
  const [reasons, blocked, left] = [new Map(), new Map(), []];
  let counted = 0;
  for (const sample of known.samples.slice(-RECENT)) {
    const then = sample.gates.get(name);
    if (!then) continue;
    counted++;
    grow(reasons, then.rejected);
    grow(blocked, then.blocked);
    if (sample.left.has(name)) left.push(sample.left.get(name));
  }
  const rejections = sum([...reasons.values()]);
  const sent = left.length ? sum(left) / left.length : 0;
  const flowing = { sent, rejected: rejections / counted, rejections };
  const state = flowing.rejected > 0 ? "rejecting" : gate.depth > 0 ? "waiting" : gate.backing_off && !gate.backing_off.shadow ? "backing off" : sent > 0 ? "passing" : "idle";
  for (const [reason, n] of reasons) reasons.set(reason, n / counted);
  return { ...gate, name, state, flowing, reasons, reason: most(reasons), cause: most(blocked) };
}

/** The gates, the most urgent first. */
export function rankedGates() {
  const place = { rejecting: 0, waiting: 1, "backing off": 2, passing: 3, idle: 3 };
  const gates = [...(last()?.gates.keys() ?? [])].map(gateNow);
  const by = (pick) => (a, b) => pick(b) - pick(a);
  return gates.sort((a, b) => place[a.state] - place[b.state] || by((gate) => gate.flowing.rejected)(a, b) || by((gate) => gate.depth)(a, b));
}

const fileRate = (gate) => gateSettings(gate.name)?.rate.file ?? pace(gate.rate.file);

/** The rate now, and that of the file if it is another; null without one. */
export function rateOf(gate) {
  if (gate.rate.now === null) return null;
  if (gate.backing_off?.shadow) return [{ bold: fileRate(gate) }];
  const file = { bold: fileRate(gate) };
  return gate.rate.file !== null && gate.rate.now < gate.rate.file ? [{ bold: pace(gate.rate.now) }, " of ", file] : [file];
}

/** The places now, and those of the file if these are others; null without a limit. */
export function placesOf(gate) {
  const file = gate.max_in_flight.file;
  const now = gate.backing_off?.shadow ? file : gate.max_in_flight.now;
  if (now === null) return null;
  return file !== null && now < file ? [{ bold: count(now) }, " of ", { bold: count(file) }] : [{ bold: count(now) }];
}

const REASONS = {
  queue: ["a key has as many requests waiting as it may: ", { code: "queue" }, " or its part of ", { code: "max_queue" }, " reached"],
  max_queue: ["as many requests wait as may wait together: ", { code: "max_queue" }, " reached"],
  timeout: ["requests have waited for ", { code: "queue_timeout" }],
  max_wait: ["requests would wait longer than ", { code: "max_wait" }],
  stopping: ["the gateway is stopping"],
};

const BACKS_OFF = {
  trouble: "the origin is in trouble",
  slow: "the origin is slow",
  retry_after: "the origin asked for a pause",
};

/** Why a gate lets less through than the file says, as a clause. */
export function whyLess({ reason, text }) {
  return [BACKS_OFF[reason] ?? reason, text ? ` (${text})` : ""].join("");
}

/** What the first request waits for, as a sentence. */
function blockedBy(gate) {
  if (gate.cause === "pause") return ["No request leaves: the origin asked for a pause. "];
  if (gate.cause === "in_flight") return ["All ", ...(placesOf(gate) ?? []), " places at the origin are in use. "];
  return gate.rate.now === null ? [] : ["Requests come in faster than ", ...rateOf(gate), " for all clients together. "];
}

function turnAt(gate) {
  const settings = gateSettings(gate.name);
  if (!settings || gate.reason === "stopping") return [];
  if (gate.backing_off && !gate.backing_off.shadow) return ["See Origins: the gate lets more through again once the origin answers well."];
  const limit = gate.cause === "in_flight"
    ? [{ code: "max_in_flight" }, ` (${count(settings.max_in_flight.file)})`]
    : [{ code: "rate" }, ` (${settings.rate.file})`];
  const raise = ["If the origin can handle more, raise ", ...limit];
  const queue = settings.queue !== null && gate.reason !== "max_queue"
    ? [{ code: "queue" }, ` (${count(settings.queue)})`]
    : [{ code: "max_queue" }, ` (${count(settings.max_queue)})`];
  if (gate.reason === "timeout") return [...raise, ", or raise ", { code: "queue_timeout" }, " to let requests wait longer."];
  if (gate.reason === "max_wait") return [...raise, ", or raise ", { code: "max_wait" }, " to let requests wait longer."];
  if (gate.state === "rejecting") return [...raise, ". Otherwise raise ", ...queue, ": more requests then wait."];
  return [...raise, "; to reject sooner, lower ", ...queue, "."];
}

/** What the summary says of a gate at which requests wait or are rejected, or that backs off. */
export function gateAnswer(gate, others) {
  const at = ["The gate of ", { bold: gate.name }];
  const deepest = gateSettings(gate.name)?.share ? gate.deepest[0] : undefined;
  const who = deepest ? ["The deepest key, ", { code: short(deepest.key) }, ...ofPlan(deepest), ", has ", { bold: whole(deepest.depth) }, ` of ${whole(gate.depth)} waiting.`] : [];
  const less = gate.backing_off && !gate.backing_off.shadow ? [`It lets less through than the file says: ${whyLess(gate.backing_off)}. `] : [];
  const wait = gate.depth === 1 ? "1 request waits" : `${whole(gate.depth)} requests wait`;
  const turn = turnAt(gate);
  if (gate.state === "rejecting") {
    const what = gate.depth > 0 ? ` rejects ${pace(gate.flowing.rejected)}; ${wait} there` : ` rejected ${whole(gate.flowing.rejections)} in the last ${RECENT} s; no requests wait now`;
    const why = ["Why: ", ...(REASONS[gate.reason] ?? [gate.reason]), ". ", ...less, ...(gate.depth > 0 ? blockedBy(gate) : []), ...who, ...others];
    return { state: "rejecting", what: [...at, what], why, turn };
  }
  if (gate.state === "waiting") return { state: "waiting", what: [wait, " at the gate of ", { bold: gate.name }], why: [...less, ...blockedBy(gate), ...who, ...others], turn };
  return { state: "waiting", what: [...at, " backs off"], why: [...less, "No requests wait there now.", ...others], turn };
}
