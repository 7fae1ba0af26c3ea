// What waits, how long, why, and which setting changes it; and the totals.

import { gateAnswer, rankedGates } from "./gates.js";
import { spark, sum } from "./plot.js";
import { RECENT, known, last } from "./state.js";
import { $, clock, count, listed, make, ofPlan, pace, requests, say, seconds, setState, setText, short, whole } from "./text.js";

const REASONS = {
  burst: ["the queue is full: ", { code: "burst" }, " reached"],
  max_wait: ["requests would wait longer than ", { code: "max_wait" }],
  keys: ["the zone holds ", { code: "max_keys" }, " keys, and each has waiting requests"],
  store: ["the store cannot be reached"],
  restart: ["a part of the gateway failed and was restarted; see the log"],
  stopping: ["the gateway is stopping"],
};

function span(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? count(most) : `${count(least)} to ${count(most)}`;
}

/** The longest wait that a zone's settings allow. */
function longestWait(settings) {
  const waits = settings.limits
    .filter((limit) => !limit.nodelay && settings.rate_per_second !== null)
    .map((limit) => Math.min((limit.burst - (limit.delay ?? 0)) / settings.rate_per_second, limit.max_wait_seconds ?? Infinity));
  return waits.length ? Math.max(...waits) : 0;
}

function turnFor(zone, settings, reason) {
  if (!settings || !settings.limits.length) return [];
  const rate = [{ code: "rate" }, ` (${settings.rate})`];
  const bursts = settings.limits.map((limit) => limit.burst);
  const burst = [{ code: "burst" }, ` (${span(bursts)})`];
  if (reason === "max_wait") return ["Raise ", ...rate, " to let requests leave sooner, or raise ", { code: "max_wait" }, " to let them wait longer."];
  const places = settings.limits.flatMap((limit) => limit.in_flight ?? []);
  if (reason === "in_flight" || (places.length && settings.rate_per_second === null)) {
    return ["If the origin can handle more at once, raise ", { code: "in_flight" }, ` (${span(places)}). Otherwise raise `, ...burst, ": more requests then wait instead of being rejected."];
  }
  if (reason === "keys") return ["Raise ", { code: "max_keys" }, ` (${count(settings.max_keys)}) to hold more keys.`];
  if (reason === "store" || reason === "restart" || reason === "stopping") return [];
  const longest = longestWait(settings);
  if (zone.state === "rejecting") {
    const more = longest > 0
      ? [": more requests then wait instead of being rejected (now up to ", { bold: seconds(longest) }, ")."]
      : [": more requests then pass at once."];
    return ["If the origin can handle more, raise ", ...rate, ". Otherwise raise ", ...burst, ...more];
  }
  return ["If the wait is too long, raise ", ...rate, " if the origin can handle more, or lower ", ...burst, " to reject sooner."];
}

/** An origin that failed at least half of the latest requests, even if its servers count as healthy. */
function failing() {
  const [first, ...rest] = known.samples.slice(-RECENT - 1);
  for (const now of rest.length ? last().origins : []) {
    const before = first.origins.find((origin) => origin.name === now.name);
    const [failed, answered] = before ? [now.failed - before.failed, now.answered - before.answered] : [0, 0];
    if (failed > 0 && failed >= answered) return { name: now.name, failed, answered };
  }
  return null;
}

function answer(zones, gates) {
  const sample = last();
  const down = sample.origins.find((origin) => origin.servers > 0 && origin.healthy === 0);
  const first = zones[0];
  if (down) {
    const why = "Its requests get 503 until a server is healthy again.";
    return { state: "rejecting", what: ["Origin ", { bold: down.name }, " has no healthy server"], why: [why], turn: ["See Origins."] };
  }
  const fails = failing();
  if (fails) {
    const share = `${whole(fails.failed)} of ${requests(fails.failed + fails.answered)} got no response in the last ${RECENT} s`;
    const turn = ["See Origins and the log. A higher rate would not help."];
    return { state: "rejecting", what: ["Origin ", { bold: fails.name }, " does not respond"], why: [`${share}: the origin was not reached, broke the connection, or took too long.`], turn };
  }
  const [gate] = gates;
  if (!first && !gate) return { state: "idle", what: ["No zones: nothing is limited"], why: ["The file has no zone and no gate, so every request passes."], turn: [] };
  const urgent = (it) => ["rejecting", "waiting", "backing off"].indexOf(it?.state);
  const gateFirst = urgent(gate) >= 0 && (urgent(first) < 0 || urgent(gate) < urgent(first) || (urgent(gate) === urgent(first) && weight(gate) >= weight(first)));
  const also = [
    ...zones.filter((zone) => urgent(zone) >= 0 && (gateFirst || zone !== first)).map((zone) => [{ bold: short(zone.name) }, ` ${zone.state}`]),
    ...gates.filter((it) => urgent(it) >= 0 && (!gateFirst || it !== gate)).map((it) => ["the gate of ", { bold: short(it.name) }, ` ${it.state}`]),
  ];
  const others = also.length ? [" Also: ", ...listed(also)] : [];
  if (gateFirst) return gateAnswer(gate, others);
  if (!first) return calm(zones, gates);
  const settings = known.settings.get(first.name);
  const deepest = sample.deepest.find((key) => key.zone === first.name);
  const who = deepest
    ? ["The deepest key, ", { code: short(deepest.key) }, ...ofPlan(deepest), ", has ", { bold: whole(deepest.depth) }, ` waiting, the oldest for ${seconds(deepest.oldest_wait)}.`]
    : [];
  if (first.state === "rejecting") {
    const reason = known.rejectedFor.get(first.name) ?? "burst";
    const what = first.depth > 0
      ? ` rejects ${pace(first.flowing.rejected)}; ${requests(first.depth)} wait${first.depth === 1 ? "s" : ""} up to ${seconds(first.oldest_wait)}`
      : ` rejected ${requests(first.flowing.rejections)} in the last ${RECENT} s; no requests wait now`;
    return { state: "rejecting", what: [{ bold: first.name }, what], why: ["Why: ", ...(REASONS[reason] ?? [reason]), ". ", ...who, ...others], turn: turnFor(first, settings, reason) };
  }
  if (first.state === "waiting") {
    const what = [`${requests(first.depth)} wait${first.depth === 1 ? "s" : ""} in `, { bold: first.name }, `, the oldest for ${seconds(first.oldest_wait)}`];
    const why = [settings ? `Requests come in faster than ${settings.rate} per key; none are rejected. ` : "", ...who, ...others];
    return { state: "waiting", what, why, turn: turnFor(first, settings) };
  }
  return calm(zones, gates);
}

/** How much is rejected, or waits. */
const weight = (it) => (it.state === "rejecting" ? it.flowing.rejected : it.depth);

/** No request waits, and none is rejected. */
function calm(zones, gates) {
  const dry = zones.filter((zone) => zone.state === "dry");
  const through = sum(zones.map((zone) => zone.flowing.through));
  const sent = sum(gates.map((gate) => gate.flowing.sent));
  const rejected = known.samples.findLast((it) => it.zones.some((zone) => zone.rejected > 0) || [...it.gates.values()].some((gate) => rejectedAt(gate) > 0));
  const passing = through > 0
    ? `${pace(through)} let through in ${zones.length === 1 ? "the zone" : `${zones.length} zones`}. `
    : `${pace(sent)} sent to ${gates.length === 1 ? "the origin" : `${gates.length} origins`}. `;
  const why = [
through > 0 || sent > 0 ? passing : "No requests in the last seconds. ",
    rejected ? `The last rejection was at ${clock(rejected.time)}.` : "No rejections in the last 10 minutes.",
  ];
  if (dry.length) why.push(" Dry run would have limited requests in ", ...listed(dry.map((zone) => [{ bold: short(zone.name) }])));
  return { state: "passing", what: ["No requests are waiting"], why, turn: [] };
}

export function showAnswer(zones) {
  const gates = rankedGates();
  const { state, what, why, turn } = answer(zones, gates);
  setState($("answer"), state);
  say($("what"), ...what);
  say($("why"), ...why);
  say($("turn"), ...turn);
  // A screen reader announces changes of state, not each number.
  const kind = `${state} ${state === "passing" ? "" : what.find((part) => part.bold)?.bold}`;
  if ($("spoken").dataset.kind !== kind) {
    $("spoken").dataset.kind = kind;
    $("spoken").textContent = $("what").textContent;
  }
  const depth = sum([...zones, ...gates].map((it) => it.depth));
  document.title = depth > 0 ? `(${whole(depth)}) drip` : "drip";
}

// ---------------- totals

const rejectedAt = (gate) => sum(Object.values(gate.rejected));
const inAll = (sample, ofZone, ofGate, join) => [...sample.zones.map(ofZone), ...[...sample.gates.values()].map(ofGate)].reduce((a, b) => join(a, b), 0);
const add = (a, b) => a + b;
const inZones = (zones) => (zones.length > 1 ? `· in ${zones.length} zones` : "");
const atGates = (gates) => sum(gates.map((gate) => gate.depth));
const passed = (zones, gates) => sum(gates.length ? [...last().left.keys()].map(sentTo) : zones.map((zone) => zone.flowing.through));
const rejected = (zones, gates) => sum([...zones, ...gates].map((it) => it.flowing.rejected));

/** Requests per second that an origin has dealt with, averaged over the last seconds. */
function sentTo(name) {
  const left = known.samples.slice(-RECENT).flatMap((sample) => sample.left.get(name) ?? []);
  return left.length ? sum(left) / left.length : 0;
}

// With a gate, what a zone lets through may still wait: then what the origins got counts.
const TOTALS = [
  {
    label: () => "waiting",
    ink: "delayed",
    of: (sample) => inAll(sample, (zone) => zone.depth, (gate) => gate.depth, add),
    tell: (zones, gates) => whole(sum(zones.map((zone) => zone.depth)) + atGates(gates)),
    more: (zones, gates) => (gates.length ? `· ${whole(atGates(gates))} at ${gates.length === 1 ? "the gate" : "gates"}` : inZones(zones)),
  },
  {
    label: (gates) => (gates.length ? "longest wait" : "oldest wait"),
    ink: "deep",
    of: (sample) => inAll(sample, (zone) => zone.oldest_wait, (gate) => gate.wait_p99 ?? 0, Math.max),
    tell: (zones, gates) => seconds(Math.max(0, ...zones.map((zone) => zone.oldest_wait), ...gates.map((gate) => gate.wait_p99 ?? 0))),
  },
  {
    label: (gates) => (gates.length ? "sent to origins" : "let through"),
    ink: "passed",
    of: (sample) => (sample.gates.size ? sum([...sample.left.values()]) : sum(sample.zones.map((zone) => zone.passed + zone.delayed))),
    tell: (zones, gates) => pace(passed(zones, gates)),
    more: (zones, gates) => (gates.length ? "" : inZones(zones)),
  },
  {
    label: () => "rejected",
    ink: "rejected",
    of: (sample) => inAll(sample, (zone) => zone.rejected, rejectedAt, add),
    tell: (zones, gates) => pace(rejected(zones, gates)),
    more: (zones, gates) => {
      const no = rejected(zones, gates);
      const part = (100 * no) / (no + passed(zones, gates));
      return no > 0 ? `· ${part < 1 ? "<1" : Math.round(part)}% of all` : "";
    },
  },
];

export function makeTotals() {
  for (const total of TOTALS) {
    const tile = make("div", "card tile");
    total.value = make("dd", "", "–");
    total.extra = make("small", "muted");
    total.canvas = make("canvas", "spark");
    total.canvas.setAttribute("aria-hidden", "true");
    const label = make("dt");
    total.name = make("span");
    label.append(total.name, " ", total.extra);
    tile.append(label, total.value, total.canvas);
    $("totals").append(tile);
  }
}

export function showTotals(zones) {
  const gates = rankedGates();
  for (const total of TOTALS) {
    setText(total.name, total.label(gates));
    setText(total.value, total.tell(zones, gates));
    setText(total.extra, total.more?.(zones, gates) ?? "");
    spark(total.canvas, total.of, total.ink);
  }
}
