// The panel of the experiment at a gate that finds what its origin takes.

import { actOnGate } from "./act.js";
import { findPlot } from "./findplot.js";
import { isOwn } from "./ownfinds.js";
import { known } from "./state.js";
import { clone, seconds, setText, visible } from "./text.js";

const WIDTH = 380; // of the plot, in its own pixels

const summaryOf = ({ state, current, lines, took }) => {
  if (state === "running") return `Experiment: ${visible(current.level)}, ${visible(current.purpose)}, for ${seconds(Math.round(took))}`;
  return `Last experiment: ${visible(lines[0] ?? "").replace(/^# /, "")}`;
};

export class FindPanel {
  constructor(origin) {
    this.origin = origin;
    this.root = clone("experiment");
    const part = (what) => this.root.querySelector(what);
    [this.summary, this.stop, this.plot, this.steps, this.lines] = ["summary", ".override", "figure", ".steps", ".lines"].map(part);
    part("button").addEventListener("click", () => actOnGate(origin, "stop"));
    this.shown = null;
  }

  show() {
    const it = known.finds.get(this.origin);
    this.root.hidden = !it;
    if (!it || it === this.shown) return;
    const isRunning = it.state === "running";
    if (isRunning && this.shown?.state !== "running") this.root.open = true;
    this.shown = it;
    setText(this.summary, summaryOf(it));
    this.stop.hidden = !isRunning;
    const owner = isOwn(it) ? "It ends 15 s after this page is closed." : `Started by ${visible(it.by)}.`;
    setText(this.stop.firstElementChild, `Looks for the highest level that keeps ${visible(it.slo)}. ${owner}`);
    this.plot.replaceChildren(findPlot(it, WIDTH));
    setText(this.steps, it.steps.map(({ line }) => visible(line)).join("\n"));
    this.steps.hidden = it.steps.length === 0;
    setText(this.lines, it.lines.map(visible).join("\n"));
    this.lines.hidden = it.lines.length === 0;
  }
}
