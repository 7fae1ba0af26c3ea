// The panel of an origin's gate: its waiting requests, and the limit that they wait for.

import { actOnGate } from "./act.js";
import { FindPanel } from "./find.js";
import { gateSettings, partOf, permitsHere, permitsOf, rateOf, sharedPermits, whyLess } from "./gates.js";
import { overrideLine, showGateOverride } from "./overrides.js";
import { Plot, seen } from "./plot.js";
import { drawSoon, last } from "./state.js";
import { axisSeconds, clone, code, count, make, pace, percent, planMark, say, seconds, setText, showPlan, stats, visible, whole } from "./text.js";

const waitFor = (depth) => (depth === 1 ? "1 request waits" : `${whole(depth)} requests wait`);

const FEW = 1; // maximum of gates that show their history at once

function plotsOf(name) {
  const of = (pick) => (sample) => {
    const gate = sample.gates.get(name);
    return gate ? pick(gate) : null;
  };
  return [
    new Plot({
      title: "Waiting",
      format: whole,
      axisFormat: count,
      integers: true,
      series: [{ label: "all keys", ink: "delayed", kind: "area", fold: "most", of: of((gate) => gate.depth) }],
    }),
    new Plot({
      title: "Sent",
      format: pace,
      axisFormat: count,
      series: [
        { label: "all clients", ink: "passed", kind: "area", fold: "mean", of: (sample) => sample.left.get(name) },
        { label: "rate", ink: "limit", kind: "limit", rare: true, fold: "last", of: of((gate) => gate.rate.now) },
        { label: "file", ink: "mark", kind: "limit", rare: true, fold: "last", of: of((gate) => (gate.rate.now < gate.rate.file ? gate.rate.file : null)) },
      ],
    }),
    new Plot({
      title: "Wait",
      format: seconds,
      axisFormat: axisSeconds,
      series: [
        { label: "p99", ink: "deep", kind: "line", fold: "most", of: of((gate) => gate.wait_p99) },
        { label: "p50", ink: "delayed", kind: "area", fold: "mean", of: of((gate) => gate.wait_p50) },
      ],
    }),
  ];
}

export class GatePanel {
  constructor(name) {
    this.root = clone("gate");
    this.root.card = this;
    const part = (what) => this.root.querySelector(what);
    [this.less, this.settings, this.rejected, this.keys, this.history] = [".less", ".settings", ".rejected", ".shares", "details"].map(part);
    this.stats = stats(part(".stats"), ["waiting", "wait p99", "sent", "rejected"]);
    this.override = overrideLine(() => actOnGate(name, "undo"));
    this.settings.before(this.override);
    part(".act").addEventListener("click", () => actOnGate(name));
    this.experiment = new FindPanel(name);
    this.root.append(this.experiment.root);
    this.plots = plotsOf(name);
    part(".plots").append(...this.plots.map((plot) => plot.root));
    this.history.open = (last()?.gates.size ?? 0) <= FEW && innerWidth >= 620;
    this.history.addEventListener("toggle", drawSoon);
    seen.observe(this.root);
  }

  show(gate) {
    const settings = gateSettings(gate.name);
    const told = [whole(gate.depth), seconds(gate.wait_p99), pace(gate.flowing.sent), pace(gate.flowing.rejected)];
    told.forEach((value, i) => setText(this.stats[i], value));
    this.stats[3].classList.toggle("bad", gate.flowing.rejected > 0);
    this.less.hidden = !(gate.outage || gate.backing_off);
    if (gate.outage) say(this.less, { bold: "The origin is down" }, `: ${waitFor(gate.depth)} for it, up to ${gate.outage.hold} (${gate.outage.error})`);
    else if (gate.backing_off) say(this.less, { bold: gate.backing_off.shadow ? "Would back off" : gate.backing_off.kept ? "All permits are back" : gate.backing_off.grows ? "Growing back" : "Backing off" }, `: ${whyLess(gate.backing_off)}${gate.backing_off.shadow ? ". In shadow mode, nothing is slowed down." : ""}`);
    showGateOverride(this.override, gate.override, settings);
    this.experiment.show();
    const reasons = [...gate.reasons].sort((a, b) => b[1] - a[1]);
    this.rejected.hidden = reasons.length === 0;
    say(this.rejected, "Rejected: ", reasons.map(([reason, n]) => `${reason} ${pace(n)}`).join(", "));
    this.showSettings(gate, settings);
    this.showKeys(gate, Boolean(settings?.share));
  }

  showSettings(gate, settings) {
    const [rate, permits, shared] = [rateOf(gate), permitsOf(gate), sharedPermits(gate.name)];
    const chips = [
      rate && ["rate ", ...rate],
      permits && ["permits ", ...permits],
      shared && permitsHere(shared),
      shared?.withheld > 0 && ["withheld ", { bold: count(shared.withheld) }, " of gateways that vanished"],
      settings?.sharing && partOf(settings.sharing),
      settings && (settings.share ? ["share ", { bold: settings.share }, "  queue ", { bold: count(settings.queue) }] : ["one queue for all"]),
      settings && ["max_queue ", { bold: count(settings.max_queue) }],
      ...(gate.classes ?? []).map((it) => ["class ", { bold: it.class }, ` weight ${it.weight}, ${whole(it.queue_depth)} waiting`]),
    ].filter(Boolean);
    while (this.settings.children.length > chips.length) this.settings.lastChild.remove();
    chips.forEach((parts, i) => say(this.settings.children[i] ?? this.settings.appendChild(make("li")), ...parts));
  }

  showKeys(gate, shared) {
    const keys = shared ? gate.deepest : [];
    this.keys.hidden = keys.length === 0;
    while (this.keys.children.length > keys.length) this.keys.lastChild.remove();
    keys.forEach((key, i) => {
      let row = this.keys.children[i];
      if (!row) {
        row = make("li", "key");
        const who = make("span", "who");
        who.append(code(""), planMark());
        row.append(who, make("i", "fill"), make("b"), make("span", "muted"));
        this.keys.append(row);
      }
      const [who, fill, depth, part] = row.children;
      const [name, plan] = who.children;
      const share = gate.depth > 0 ? key.depth / gate.depth : 0;
      setText(name, key.key === "" ? "(no key)" : visible(key.key));
      if (row.title !== name.textContent) row.title = name.textContent;
      showPlan(plan, key.plan);
      fill.style.setProperty("--part", share.toFixed(3));
      setText(depth, whole(key.depth));
      setText(part, percent(share, 1));
    });
  }

  draw() {
    if (this.onScreen && this.history.open) this.plots.forEach((plot) => plot.draw());
  }
}
