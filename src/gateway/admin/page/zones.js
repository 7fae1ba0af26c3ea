// The zones, one card each.

import { actOnZone } from "./act.js";
import { visit } from "./address.js";
import { inShort, overrideLine, showOverride } from "./overrides.js";
import { Plot, seen, spark } from "./plot.js";
import { drawSoon, known, last, view } from "./state.js";
import { $, axisSeconds, clone, count, make, pace, percent, say, seconds, setState, setText, short, stats, visible, whole } from "./text.js";

const FEW = 5; // maximum of zones that keep the file's order, with all plots open
const LISTED_AT_FIRST = 12; // zones listed before "Show more"
const PLANS = 6; // plans of a zone that are shown; the settings in force have all

const VERDICTS = [
  ["passed", "passed", false],
  ["delayed", "delayed", false],
  ["dry_run", "dry run", true],
  ["cancelled", "client left", true],
  ["rejected_elsewhere", "rejected by another limit", true],
  ["rejected", "rejected", false],
];
const INK = { rejected_elsewhere: "elsewhere" };

function plotsOf(name) {
  const of = (pick) => (sample) => {
    const zone = sample.zone.get(name);
    return zone ? pick(zone) : null;
  };
  const roomAt = (sample) => {
    if (!sample.zone.has(name)) return null;
    const rooms = known.rooms.get(name) ?? [];
    return (rooms.findLast(([since]) => since <= sample.time) ?? rooms[0])?.[1] ?? null;
  };
  return [
    new Plot({
      title: "Let through",
      format: pace,
      axisFormat: count,
      series: [
        { label: "all keys", ink: "passed", kind: "area", fold: "mean", of: of((zone) => zone.passed + zone.delayed) },
        { label: "rate per key", ink: "limit", kind: "limit", fold: "last", of: of((zone) => zone.rate) },
      ],
    }),
    new Plot({
      title: "Depth",
      format: whole,
      axisFormat: count,
      integers: true,
      series: [
        { label: "all keys", ink: "delayed", kind: "area", fold: "most", of: of((zone) => zone.depth) },
        { label: "deepest", ink: "deep", kind: "line", fold: "most", of: of((zone) => zone.depth_max) },
        { label: "burst per key", ink: "limit", kind: "limit", fold: "last", of: roomAt },
      ],
    }),
    new Plot({
      title: "Wait",
      format: seconds,
      axisFormat: axisSeconds,
      series: [
        { label: "p95", ink: "deep", kind: "line", fold: "most", of: of((zone) => zone.wait_p95) },
        { label: "p50", ink: "delayed", kind: "area", fold: "mean", of: of((zone) => zone.wait_p50) },
      ],
    }),
    new Plot({
      title: "Verdicts per second",
      format: count,
      series: VERDICTS.map(([name, label, rare]) => ({ label, ink: INK[name] ?? name, kind: "stack", rare, fold: "mean", of: of((zone) => zone[name]) })),
    }),
  ];
}

class ZoneCard {
  constructor(name) {
    this.name = name;
    this.root = clone("zone");
    this.root.card = this;
    this.head = this.root.querySelector(".head");
    this.pill = this.root.querySelector(".pill");
    this.spark = this.root.querySelector(".spark");
    this.body = this.root.querySelector(".body");
    const title = this.root.querySelector(".name");
    title.textContent = visible(name);
    title.title = visible(name);
    this.body.id = `zone-${cards.size}-${Date.now()}`;
    this.head.setAttribute("aria-controls", this.body.id);
    this.head.addEventListener("click", () => {
      view.toggled.set(name, !this.open);
      visit(this.open ? null : name);
      drawSoon();
    });
    this.stats = stats(this.root.querySelector(".stats"), ["depth", "oldest wait", "let through", "rejected"]);
    this.differs = this.root.querySelector(".differs");
    this.override = overrideLine(() => actOnZone(name, "undo"));
    this.body.prepend(this.override);
    this.facts = this.root.querySelector(".facts");
    this.blame = this.root.querySelector(".blame");
    this.root.querySelector(".act").addEventListener("click", () => actOnZone(name));
    this.plots = null;
    this.open = null;
    seen.observe(this.root);
  }

  show(zone, open) {
    setState(this.root, zone.state);
    setState(this.pill, zone.state);
    setText(this.pill.firstElementChild, zone.state === "dry" ? "dry run" : zone.state === "flooded" ? zone.flowing.flood : zone.state);
    this.differs.hidden = !zone.override;
    if (zone.override) setText(this.differs, inShort(zone.override));
    const told = [whole(zone.depth), seconds(zone.oldest_wait), pace(zone.flowing.through), pace(zone.flowing.rejected)];
    told.forEach((value, i) => setText(this.stats[i], value));
    this.stats[3].classList.toggle("bad", zone.flowing.rejected > 0);
    if (this.open !== open) {
      this.open = open;
      this.head.setAttribute("aria-expanded", String(open));
      this.body.hidden = !open;
      if (open && !this.plots) {
        this.plots = plotsOf(this.name);
        this.body.querySelector(".plots").append(...this.plots.map((plot) => plot.root));
      }
    }
    if (!open) return;
    this.showSettings();
    this.showFacts(zone);
    showOverride(this.override, zone.override, known.settings.get(this.name)?.rate);
  }

  /** Keys that come and go, and who is rejected. */
  showFacts(zone) {
    const { fresh, evicted, flooded } = zone.flowing;
    const crowded = zone.flowing.flood !== null;
    const facts = [
      [crowded, ["keys ", { bold: whole(zone.keys) }, ...(zone.max_keys > 0 ? [" of ", { bold: count(zone.max_keys) }] : [])]],
      [zone.flowing.flood === "new keys", ["new keys ", { bold: `${count(fresh)} a second` }]],
      evicted > 0 && [true, ["forgotten for others ", { bold: `${count(evicted)} a second` }]],
      flooded > 0 && [true, ["share one bucket ", { bold: pace(flooded) }]],
      zone.overridden_keys > 0 && [true, [{ bold: count(zone.overridden_keys) }, zone.overridden_keys === 1 ? " key not as in the file" : " keys not as in the file"]],
    ].filter(Boolean);
    while (this.facts.children.length > facts.length) this.facts.lastChild.remove();
    facts.forEach(([wrong, parts], i) => {
      const fact = this.facts.children[i] ?? this.facts.appendChild(make("li"));
      fact.classList.toggle("wrong", Boolean(wrong));
      say(fact, ...parts);
    });
    const keys = zone.rejected_keys ?? [];
    this.blame.hidden = keys.length === 0;
    const who = keys.flatMap((key, i) => [i ? ", " : "", { code: short(key.key) }, ` ${percent(key.share, 1)}`]);
    say(this.blame, "Most rejected in the last minute: ", ...who);
  }

  /** Labels the queue capacity of a key with the settings that it comes from. */
  nameRoom(limits) {
    const depth = this.plots[1];
    depth.series[2].label = limits.some((limit) => limit.delay > 0) ? "burst − delay" : "burst per key";
    depth.legend[2].previousSibling.textContent = depth.series[2].label;
  }

  showSettings() {
    const zone = known.settings.get(this.name);
    if (!zone || this.shown === zone.said) return;
    this.shown = zone.said;
    this.nameRoom(zone.limits);
    const list = this.body.querySelector(".settings");
    const item = (...parts) => {
      const it = make("li");
      say(it, ...parts);
      return it;
    };
    const own = ["rate ", { bold: zone.rate }, "  key ", { code: zone.key }];
    if (zone.algorithm !== "leaky_bucket") own.push("  algorithm ", { bold: zone.algorithm });
    const limits = zone.limits.map((limit) => {
      const parts = [{ code: limit.route }, "  burst ", { bold: count(limit.burst) }];
      if (limit.nodelay) parts.push({ bold: "  nodelay" });
      else parts.push("  delay ", { bold: count(limit.delay ?? 0) });
      if (limit.in_flight !== null) parts.push("  in_flight ", { bold: count(limit.in_flight) });
      if (limit.max_wait_seconds !== null) parts.push("  max_wait ", { bold: seconds(limit.max_wait_seconds) });
      if (limit.dry_run) parts.push({ bold: "  dry run" });
      return item(...parts);
    });
    const all = zone.plans ?? [];
    const plans = all.slice(0, PLANS).map((plan) => {
      const parts = ["plan ", { bold: plan.plan }, `  ${plan.keys === 1 ? "1 key" : `${count(plan.keys)} keys`}`];
      if (plan.rate !== null) parts.push("  rate ", { bold: plan.rate });
      if (plan.burst !== null) parts.push("  burst ", { bold: count(plan.burst) });
      if (plan.weight !== 1) parts.push("  weight ", { bold: String(plan.weight) });
      if (plan.class !== null) parts.push("  class ", { bold: plan.class });
      return item(...parts);
    });
    if (all.length > PLANS) plans.push(item(`and ${all.length - PLANS} more plans`));
    list.replaceChildren(item(...own), ...limits, ...plans);
  }

  draw() {
    if (!this.onScreen || this.root.hidden) return;
    const color = { rejecting: "rejected", paused: "rejected", flooded: "mark", idle: "cancelled" }[this.root.dataset.state] ?? "delayed";
    spark(this.spark, (sample) => sample.zone.get(this.name)?.depth, color);
    if (this.open) this.plots.forEach((plot) => plot.draw());
  }
}

export const cards = new Map();

export function showZones(zones) {
  const names = new Set(zones.map((zone) => zone.name));
  for (const [name, card] of cards) {
    if (!names.has(name)) {
      seen.unobserve(card.root);
      card.root.remove();
      cards.delete(name);
    }
  }
  // Few zones keep the file's order, so that nothing moves. Many are sorted, the most urgent first.
  // While the pointer or the focus is on the list, only an added or removed zone changes it.
  const many = zones.length > FEW;
  const list = $("zones");
  const held = list.matches(":hover") || list.querySelector(":focus-visible") || view.cursor !== null;
  const time = last()?.time ?? 0;
  const isNew = zones.some((zone) => !cards.has(zone.name)) || view.order.length !== zones.length;
  if (isNew || (many && !held && time - (view.ordered ?? 0) >= 3)) {
    const order = many ? zones.map((zone) => zone.name) : last().zones.map((zone) => zone.name);
    view.ordered = time;
    if (isNew) view.openFirst = new Set(many || innerWidth < 620 ? order.slice(0, 1) : order);
    if (order.join("\n") !== view.order.join("\n") || isNew) {
      view.order = order;
      for (const name of order) {
        if (!cards.has(name)) cards.set(name, new ZoneCard(name));
      }
      order.forEach((name, i) => {
        const { root } = cards.get(name);
        if (list.children[i] !== root) list.insertBefore(root, list.children[i] ?? null);
      });
    }
  }
  const byName = new Map(zones.map((zone) => [zone.name, zone]));
  const wanted = view.order.filter((name) => name.toLowerCase().includes(view.find));
  const first = wanted.filter((name, i) => i < LISTED_AT_FIRST || name === view.zone);
  const listed = new Set(view.all || view.find ? wanted : first);
  for (const [name, card] of cards) {
    card.root.hidden = !listed.has(name);
    if (listed.has(name)) card.show(byName.get(name), view.toggled.get(name) ?? view.openFirst.has(name));
  }
  $("find").hidden = !many;
  $("zones-section").hidden = zones.length === 0;
  const more = wanted.length - listed.size;
  $("more").hidden = more === 0;
  setText($("more"), `Show ${more} more zones`);
  const all = many ? `${zones.length}, the most urgent first` : String(zones.length);
  setText($("zones-count"), view.find ? `${wanted.length} of ${zones.length}` : all);
}
