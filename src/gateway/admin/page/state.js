// The data received from the gateway, and the choices of the reader.

export const KEPT = 600; // seconds of history
export const RECENT = 10; // samples that "now" averages over
const MANY_NEW = 50; // unknown keys a second that are a flood, if half of all requests have one
const NEARLY_FULL = 0.9; // of max_keys

export const sum = (values) => values.reduce((a, b) => a + b, 0);
/** All values of a map from the gateway together, such as of answers by class. */
export const total = (counts) => sum(Object.values(counts ?? {}));

export const known = {
  samples: [], // oldest first; `zone` maps the name of each zone to its values
  settings: new Map(), // name -> zone of /api/zones
  rooms: new Map(), // name -> [[since, queue capacity of one key]...], oldest first
  config: null,
  origins: [],
  before: [], // the origins of the last requests, oldest first, each {at, origins}
  routes: null,
  store: null,
  finds: new Map(), // origin -> its last experiment
  heavy: null, // the last answer of /api/zones/{zone}/keys, with what was asked
};
export const view = {
  range: 600,
  cursor: null,
  plot: null, // the one under the pointer or the focus
  find: "",
  all: false,
  zone: null, // the zone that the address names
  toggled: new Map(),
  order: [],
  openFirst: new Set(),
  sort: "rejections",
  window: 60,
};

const SPANS = [60, 120, 300]; // seconds that plots show soon after the start

/** How many seconds the plots show: the chosen range, or less while there are not as many samples. */
export function shownSpan() {
  const covered = known.samples.length ? last().time - known.samples[0].time : 0;
  return Math.min(view.range, SPANS.find((span) => span >= covered) ?? view.range);
}

export const last = () => known.samples.at(-1);
export const recent = () => known.samples.slice(-RECENT);

export function take(sample) {
  const before = last();
  if (before && sample.time <= before.time) return;
  sample.zone = new Map(sample.zones.map((zone) => [zone.name, zone]));
  sample.origin = new Map(sample.origins.map((origin) => [origin.name, origin]));
  sample.gates = new Map(sample.origins.filter((origin) => origin.gate).map((origin) => [origin.name, origin.gate]));
  sample.left = departures(before, sample);
  sample.restarted = Boolean(before) && sample.seq < before.seq;
  sample.retuned = Boolean(before) && !sample.restarted && sample.reload !== before.reload;
  known.samples.push(sample);
  const oldest = sample.time - KEPT;
  while (known.samples[0].time < oldest) known.samples.shift();
}

/** Requests per second that each origin has dealt with since the sample before, by its name. */
function departures(before, sample) {
  const ended = (origin) => origin.answered + origin.failed;
  const span = before ? Math.max(0.5, sample.time - before.time) : 1;
  const rate = (origin) => (ended(origin) - ended(before?.origin.get(origin.name) ?? { answered: NaN, failed: 0 })) / span;
  return new Map(sample.origins.map((origin) => [origin.name, rate(origin)]).filter(([, n]) => n >= 0));
}

/** Requests per second of one zone, averaged over the last seconds. */
function flow(name) {
  const all = { through: 0, rejected: 0, dry: 0, fresh: 0, evicted: 0, flooded: 0 };
  let counted = 0;
  for (const sample of recent()) {
    const zone = sample.zone.get(name);
    if (!zone) continue;
    counted++;
    all.through += zone.passed + zone.delayed;
    all.rejected += zone.rejected;
    all.dry += zone.dry_run;
    all.fresh += zone.new_keys ?? 0;
    all.evicted += zone.evicted ?? 0;
    all.flooded += zone.flooded ?? 0;
  }
  for (const key of Object.keys(all)) all[key] /= Math.max(1, counted);
  return all;
}

export const limitsOf = (name) => known.settings.get(name)?.limits ?? [];

/** How many requests of one key may wait: `burst` - `delay`, of the limit that allows most. A plan may have another burst. */
export function roomOf(limits, plan) {
  const room = (limit) => {
    const burst = plan?.burst ?? limit.burst;
    return burst - Math.min(burst, limit.delay ?? 0);
  };
  const rooms = limits.filter((limit) => !limit.nodelay).map(room);
  return rooms.length ? Math.max(...rooms) : null;
}

/** The settings of a plan of a zone; undefined without one. */
export const planOf = (zone, name) => known.settings.get(zone)?.plans?.find((plan) => plan.plan === name);

/** Why a zone has too many keys, by the rules of the headline; null if it has not. */
function flood(zone, { through, rejected, dry, fresh, evicted, flooded }) {
  const all = fresh + flooded;
  if (flooded > 0 || (all >= MANY_NEW && all * 2 >= through + rejected + dry)) return "new keys";
  const full = zone.max_keys > 0 && zone.keys >= zone.max_keys * NEARLY_FULL;
  return full || evicted > 0 ? "full of keys" : null;
}

function stateOf(zone, flowing) {
  if (zone.override?.pause) return "paused";
  if (flowing.rejected > 0) return "rejecting";
  if (flowing.flood) return "flooded";
  if (zone.depth > 0) return "waiting";
  if (flowing.dry > 0) return "dry";
  return flowing.through > 0 ? "passing" : "idle";
}

/** The current zones, the most urgent first. */
export function ranked() {
  const zones = (last()?.zones ?? []).map((zone) => {
    const flowing = flow(zone.name);
    flowing.flood = flood(zone, flowing);
    return { ...zone, flowing, state: stateOf(zone, flowing) };
  });
  const place = { paused: 0, rejecting: 1, flooded: 2, waiting: 3, dry: 4, passing: 4, idle: 5 };
  const by = (pick) => (a, b) => pick(b) - pick(a);
  const rejected = by((zone) => zone.flowing.rejected);
  const depth = by((zone) => zone.depth);
  const through = by((zone) => zone.flowing.through);
  return zones.sort((a, b) => place[a.state] - place[b.state] || rejected(a, b) || depth(a, b) || through(a, b));
}

// ---------------- drawing

let drawing = false;
let draw = () => {};

/** Sets what draws the page. */
export function drawWith(how) {
  draw = how;
}

export function drawSoon() {
  if (drawing || document.hidden) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}
