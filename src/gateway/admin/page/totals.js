// The totals of the gateway: each request counts once.

import { spark } from "./plot.js";
import { known, last, recent, sum, total } from "./state.js";
import { $, make, pace, percent, seconds, setText, whole } from "./text.js";

const mean = (of) => sum(recent().map(of)) / Math.max(1, recent().length);
const answered = (sample) => total(sample.codes);
const failed = (sample) => sample.codes?.["5xx"] ?? 0;
const left = (sample) => sum(sample.zones.map((zone) => zone.cancelled));
const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);

/** A request is rejected by one zone or one gate. */
function rejected(sample) {
  sample.rejected ??= sum(sample.zones.map((zone) => zone.rejected)) + sum([...sample.gates.values()].map((gate) => total(gate.rejected)));
  return sample.rejected;
}

/** Groups of zones that wait for the same requests: a request waits in all zones of its route at once. */
const groups = { settings: null, said: "", of: new Map() };

function group() {
  if (groups.settings === known.settings) return;
  groups.settings = known.settings;
  const zones = [...known.settings.values()];
  const said = JSON.stringify(zones.map(({ name, limits }) => [name, limits.map(({ route }) => route)]));
  if (groups.said === said) return;
  groups.said = said;
  const above = new Map();
  const top = (it) => {
    while (above.has(it)) it = above.get(it);
    return it;
  };
  for (const { name, limits } of zones) {
    for (const { route } of limits) {
      const [a, b] = [top(`zone ${name}`), top(`route ${route}`)];
      if (a !== b) above.set(a, b);
    }
  }
  groups.of = new Map(zones.map(({ name }) => [name, top(`zone ${name}`)]));
}

/** Lower bound of the waiting requests: a request in two zones counts once. */
function waiting(sample) {
  if (sample.waiting?.of === groups.of) return sample.waiting;
  const deepest = new Map();
  let isLeast = false;
  for (const { name, depth } of sample.zones) {
    if (depth === 0) continue;
    const of = groups.of.get(name) ?? name;
    isLeast ||= deepest.has(of);
    deepest.set(of, Math.max(depth, deepest.get(of) ?? 0));
  }
  const gates = sum([...sample.gates.values()].map((gate) => gate.depth));
  sample.waiting = { of: groups.of, requests: sum([...deepest.values()]) + gates, gates, isLeast };
  return sample.waiting;
}

const oldest = (sample) => most([...sample.zones.map((zone) => zone.oldest_wait), ...[...sample.gates.values()].map((gate) => gate.wait_p99 ?? 0)]);

/** What the title of the tab begins with, by the severity of the headline. */
const MARKS = { bad: "⛔ ", warn: "⚠ " };

const TOTALS = [
  {
    label: "answers",
    title: "Answers to clients, including those of drip itself. Each request counts once.",
    ink: "passed",
    of: answered,
    tell: () => pace(mean(answered)),
  },
  {
    label: "waiting",
    title: "Requests that wait in zones and at gates now. ≥: some may wait in two zones at once.",
    ink: "delayed",
    of: (sample) => waiting(sample).requests,
    tell: () => {
      const now = waiting(last());
      return `${now.isLeast ? "≥ " : ""}${whole(now.requests)}`;
    },
    more: () => {
      const now = waiting(last());
      if (now.requests === 0) return "";
      return now.gates > 0 ? `· ${whole(now.gates)} at ${last().gates.size === 1 ? "the gate" : "gates"}` : `· up to ${seconds(oldest(last()))}`;
    },
  },
  {
    label: "rejected",
    title: "Requests that a zone or a gate rejected. Each counts once.",
    ink: "rejected",
    of: rejected,
    tell: () => pace(mean(rejected)),
    more: () => (mean(rejected) > 0 && mean(answered) > 0 ? `· ${percent(mean(rejected), mean(answered))} of all` : ""),
    isBad: () => mean(rejected) > 0,
  },
  {
    label: "left",
    title: "Requests whose clients disconnected while they waited in a zone",
    ink: "delayed",
    of: left,
    tell: () => pace(mean(left)),
    more: () => "· while waiting",
    isBad: () => mean(left) > mean(answered) / 5,
  },
  {
    label: "errors",
    title: "Answers to clients with status 5xx, of origins and of drip itself",
    ink: "rejected",
    of: failed,
    tell: () => (mean(answered) > 0 ? percent(mean(failed), mean(answered)) : "–"),
    more: () => (mean(failed) > 0 ? `· 5xx ${pace(mean(failed))}` : "· 5xx"),
    isBad: () => mean(failed) > 0,
  },
];

export function makeTotals() {
  for (const it of TOTALS) {
    const tile = make("div", "card tile");
    tile.title = it.title;
    tile.dataset.total = it.label;
    it.value = make("dd", "", "–");
    it.extra = make("small", "muted");
    it.canvas = make("canvas", "spark");
    it.canvas.setAttribute("aria-hidden", "true");
    const label = make("dt", "", it.label);
    label.append(" ", it.extra);
    tile.append(label, it.value, it.canvas);
    $("totals").append(tile);
  }
}

export function showTotals() {
  group();
  for (const it of TOTALS) {
    setText(it.value, it.tell());
    setText(it.extra, it.more?.() ?? "");
    it.value.classList.toggle("bad", it.isBad?.() ?? false);
    spark(it.canvas, it.of, it.ink);
  }
  const { requests } = waiting(last());
  const name = known.config?.gateway;
  const mark = MARKS[last().headline.severity] ?? "";
  document.title = `${mark}${requests > 0 ? `(${whole(requests)}) ` : ""}${name ? `${name} · ` : ""}drip`;
}
