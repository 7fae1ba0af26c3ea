// What the gateway has told, and what the reader has chosen.

export const KEPT = 600; // seconds of history
export const RECENT = 10; // samples that "now" averages over

export const known = {
  samples: [], // oldest first; `zone` maps the name of each zone to its values
  settings: new Map(), // name -> zone of /api/zones
  rooms: new Map(), // name -> [[since, queue capacity of one key]...], oldest first
  rejectedFor: new Map(), // name -> the reason that grew most between the last two requests
  config: null,
  origins: [],
};
export const view = { range: 600, cursor: null, find: "", all: false, toggled: new Map(), order: [], openFirst: new Set() };

export const last = () => known.samples.at(-1);

export function take(sample) {
  const before = last();
  if (before && sample.time <= before.time) return;
  sample.zone = new Map(sample.zones.map((zone) => [zone.name, zone]));
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
  const earlier = new Map((before?.origins ?? []).map((origin) => [origin.name, ended(origin)]));
  const span = before ? Math.max(0.5, sample.time - before.time) : 1;
  const rate = (origin) => (ended(origin) - earlier.get(origin.name)) / span;
  return new Map(sample.origins.map((origin) => [origin.name, rate(origin)]).filter(([, n]) => n >= 0));
}

/** Requests per second of one zone, averaged over the last seconds. */
export function flow(name) {
  const sum = { through: 0, rejected: 0, dry: 0 };
  let counted = 0;
  for (const sample of known.samples.slice(-RECENT)) {
    const zone = sample.zone.get(name);
    if (!zone) continue;
    counted++;
    sum.through += zone.passed + zone.delayed;
    sum.rejected += zone.rejected;
    sum.dry += zone.dry_run;
  }
  const rejections = sum.rejected;
  for (const key of Object.keys(sum)) sum[key] /= Math.max(1, counted);
  return { ...sum, rejections };
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

export function stateOf(zone, flowing) {
  if (flowing.rejected > 0) return "rejecting";
  if (zone.depth > 0) return "waiting";
  if (flowing.dry > 0) return "dry";
  return flowing.through > 0 ? "passing" : "idle";
}

/** The current zones, the most urgent first. */
export function ranked() {
  const zones = (last()?.zones ?? []).map((zone) => {
    const flowing = flow(zone.name);
    return { ...zone, flowing, state: stateOf(zone, flowing) };
  });
  const place = { rejecting: 0, waiting: 1, dry: 2, passing: 2, idle: 3 };
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
