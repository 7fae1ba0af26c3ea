// The origins: how each answers, what is shared, its gate, its waiting room, and its servers.

import { GatePanel } from "./gatepanel.js";
import { gateNow } from "./gates.js";
import { Plot, seen } from "./plot.js";
import { RoomPanel } from "./rooms.js";
import { showServers } from "./servers.js";
import { showShared } from "./shared.js";
import { drawSoon, known, last, recent, total } from "./state.js";
import { $, axisSeconds, clone, count, listOf, pace, seconds, setState, setText, stats, visible, whole } from "./text.js";

const FEW = 2; // maximum of origins that show their history at once
const MANY = 0.5; // share of requests without a good answer from which an origin does not work
const SOME = 0.01;

function plotsOf(name) {
  const of = (pick) => (sample) => {
    const origin = sample.origin.get(name);
    return origin ? pick(origin) : null;
  };
  const answers = [["2xx", "passed"], ["3xx", "redirect"], ["4xx", "client"], ["5xx", "rejected"]];
  return [
    new Plot({
      title: "Answers",
      format: pace,
      axisFormat: count,
      series: [
        ...answers.map(([label, ink]) => ({ label, ink, kind: "stack", rare: label === "3xx" || label === "4xx", fold: "mean", of: of((origin) => origin.codes?.[label] ?? 0) })),
        { label: "none", ink: "none", kind: "stack", rare: true, fold: "mean", of: of((origin) => total(origin.errors)) },
      ],
    }),
    new Plot({
      title: "Latency",
      format: seconds,
      axisFormat: axisSeconds,
      series: [
        { label: "p99", ink: "rejected", kind: "line", fold: "most", of: of((origin) => origin.latency?.p99) },
        { label: "p95", ink: "deep", kind: "line", fold: "most", of: of((origin) => origin.latency?.p95) },
        { label: "p50", ink: "delayed", kind: "area", fold: "mean", of: of((origin) => origin.latency?.p50) },
      ],
    }),
  ];
}

function flow(name) {
  const codes = {};
  const errors = {};
  let counted = 0;
  for (const sample of recent()) {
    const origin = sample.origin.get(name);
    if (!origin) continue;
    counted++;
    for (const [from, to] of [[origin.codes, codes], [origin.errors, errors]]) {
      for (const [kind, n] of Object.entries(from ?? {})) to[kind] = (to[kind] ?? 0) + n;
    }
  }
  const each = (of) => Object.fromEntries(Object.entries(of).map(([kind, n]) => [kind, n / counted]));
  return { codes: each(codes), errors: each(errors) };
}

function stateOf({ servers, healthy, failing }, { codes, errors }) {
  const none = total(errors);
  const all = none + total(codes);
  const bad = none + (codes["5xx"] ?? 0);
  if (servers > 0 && healthy === 0) return [servers === 1 ? "out" : "all out", "rejecting"];
  if (none > 0 && none >= all * MANY) return ["does not answer", "rejecting"];
  if (bad > 0 && bad >= all * MANY) return ["answers 5xx", "rejecting"];
  if (failing > 0 && failing >= healthy) return ["failing", "rejecting"];
  if (healthy < servers) return [`${servers - healthy} of ${servers} out`, "waiting"];
  if (failing > 0) return [`${failing} of ${servers} failing`, "waiting"];
  if (bad > 0 && bad >= all * SOME) return ["some fail", "waiting"];
  return all > 0 ? ["answers", "passing"] : ["idle", "idle"];
}

class OriginPanel {
  constructor(name) {
    this.name = name;
    this.root = clone("origin");
    this.root.card = this;
    const part = (what) => this.root.querySelector(what);
    [this.pill, this.told, this.shared, this.fails, this.history, this.servers] = [".pill", ".told", ".shared", ".fails", "details", ".servers"].map(part);
    setText(part(".name"), visible(name));
    this.stats = stats(part(".stats"), ["answers", "5xx", "no answer", "p95"]);
    this.plots = plotsOf(name);
    part(".plots").append(...this.plots.map((plot) => plot.root));
    this.history.open = known.origins.length <= FEW && innerWidth >= 620;
    this.history.addEventListener("toggle", drawSoon);
    this.gate = null;
    this.room = null;
    seen.observe(this.root);
  }

  show(origin, now) {
    const gate = gateNow(this.name);
    const state = now ? this.showNow(now, gate) : ["idle", "idle"];
    if (!gate !== !this.gate) {
      if (this.gate) seen.unobserve(this.gate.root);
      this.gate?.root.remove();
      this.gate = gate && new GatePanel(this.name);
      if (gate) this.servers.before(this.gate.root);
    }
    this.gate?.show(gate);
    showShared(this.shared, this.name);
    this.showRoom(now?.room);
    showServers(this.servers, origin, state);
  }

  showRoom(room) {
    if (!room !== !this.room) {
      if (this.room) seen.unobserve(this.room.root);
      this.room?.root.remove();
      this.room = room ? new RoomPanel(this.name) : null;
      if (room) this.servers.before(this.room.root);
    }
    this.room?.show(room);
  }

  showNow(now, gate) {
    const limit = gate?.backing_off?.shadow ? now.max_in_flight : (gate?.max_in_flight.now ?? now.max_in_flight);
    setText(this.told, `${whole(now.in_flight)}${limit ? ` of ${count(limit)}` : ""} in flight`);
    this.told.classList.toggle("full", Boolean(limit) && now.in_flight >= limit);
    const flowing = flow(this.name);
    const state = stateOf(now, flowing);
    setState(this.pill, state[1]);
    setText(this.pill.firstElementChild, state[0]);
    const [all, none, bad] = [total(flowing.codes), total(flowing.errors), flowing.codes["5xx"] ?? 0];
    const latest = recent().findLast((sample) => (sample.origin.get(this.name)?.latency?.p95 ?? null) !== null);
    const told = [pace(all), pace(bad), pace(none), seconds(latest?.origin.get(this.name).latency.p95)];
    told.forEach((value, i) => setText(this.stats[i], value));
    this.stats[1].classList.toggle("bad", bad > 0);
    this.stats[2].classList.toggle("bad", none > 0);
    const fails = [none > 0 ? `No answer: ${listOf(flowing.errors, pace)}.` : "", now.last_failure ? `Last failure: ${visible(now.last_failure)}` : ""];
    this.fails.hidden = !fails.some(Boolean);
    setText(this.fails, fails.filter(Boolean).join(" "));
    return state;
  }

  draw() {
    if (this.onScreen && this.history.open) this.plots.forEach((plot) => plot.draw());
    this.gate?.draw();
    this.room?.draw();
  }
}

const panels = new Map();

/** Values that change each second come with the samples, addresses and totals with /api/origins. */
export function showOrigins() {
  const list = $("origins");
  const names = new Set(known.origins.map((origin) => origin.name));
  for (const [name, panel] of panels) {
    if (names.has(name)) continue;
    seen.unobserve(panel.root);
    panel.root.remove();
    panels.delete(name);
  }
  known.origins.forEach((origin, i) => {
    if (!panels.has(origin.name)) panels.set(origin.name, new OriginPanel(origin.name));
    const panel = panels.get(origin.name);
    if (list.children[i] !== panel.root) list.insertBefore(panel.root, list.children[i] ?? null);
    panel.show(origin, last().origin.get(origin.name));
    panel.draw();
  });
}
