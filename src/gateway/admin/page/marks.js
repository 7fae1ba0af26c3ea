// Marks on plots: reloads, overrides and restarts, and what each changed.

import { ink, rule } from "./canvas.js";
import { known, shownSpan } from "./state.js";
import { clock, make, visible } from "./text.js";

const CLOSE = 14; // px between marks that are drawn as one
const NEAR = 9; // px from the cursor to the mark whose changes are shown
const SAME = 4; // seconds between a sample and the change that it shows
const LINES = 6; // changes that a mark tells; the list of changes has all

let found = { samples: null, changes: null, time: 0, marks: [] };

/** Moments at which something changed, oldest first: {time, word, by, what}. */
export function marks() {
  const changes = known.config?.changes;
  const time = known.samples.at(-1)?.time;
  if (found.changes === changes && found.time === time) return found.marks;
  const all = (changes ?? []).map(({ at, by, what }) => ({ time: Date.parse(at) / 1000, word: wordOf(by, what), by, what }));
  for (const sample of known.samples) {
    if (sample.restarted) all.push({ time: sample.time, word: "restart", by: "", what: ["the gateway started"] });
    // The list of changes is asked for after the sample.
    if (sample.retuned && !all.some((mark) => Math.abs(mark.time - sample.time) < SAME)) {
      all.push({ time: sample.time, word: "reload", by: "", what: [] });
    }
  }
  found = { changes, time, marks: all.filter((mark) => Number.isFinite(mark.time)).sort((a, b) => a.time - b.time) };
  return found.marks;
}

function wordOf(by, what) {
  if (by === "expiry") return "expiry";
  return what.some((one) => /override|pause|dry_run|forg[eo]t/.test(one)) && by !== "file" && by !== "signal" ? "override" : "reload";
}

/** Draws the marks, close ones as one, and returns where: [{at, marks}]. */
export function drawMarks(context, area, x, now) {
  const drawn = [];
  for (const mark of marks()) {
    if (mark.time < now - shownSpan() || mark.time > now) continue;
    const at = Math.round(x(mark.time)) + 0.5;
    const before = drawn.at(-1);
    if (before && at - before.at < CLOSE) before.marks.push(mark);
    else drawn.push({ at, marks: [mark] });
  }
  let free = -Infinity;
  drawn.forEach(({ at, marks: here }, i) => {
    context.strokeStyle = context.fillStyle = ink.mark;
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    rule(context, at, area.top - 3, at, area.bottom);
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(at - 4, area.top - 7);
    context.lineTo(at + 4, area.top - 7);
    context.lineTo(at, area.top);
    context.fill();
    const full = here.length > 1 ? `${here.length} changes` : here[0].word;
    const next = drawn[i + 1]?.at ?? area.right;
    const word = [full, here.length > 1 ? String(here.length) : ""].find((it) => it && at > free && at + 8 + context.measureText(it).width < next);
    if (!word) return;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = ink.card;
    context.strokeText(word, at + 6, area.top - 1);
    context.fillText(word, at + 6, area.top - 1);
    free = at + context.measureText(word).width + 8;
  });
  context.textBaseline = "alphabetic";
  return drawn;
}

/** One change as lines of text. */
export function linesOf({ time, word, by, what }) {
  const head = `${clock(time)} ${word}${by ? ` by ${visible(by)}` : ""}`;
  return [head, ...what.map((one) => visible(one).replace(" -> ", " → "))];
}

/** Tells what changed at the mark near `at`, over the plot; without one, hides it. */
export function showTip(plot, at) {
  const near = at === null ? null : plot.marks.find((it) => Math.abs(it.at - at) <= NEAR);
  plot.tip ??= plot.root.querySelector(".tip");
  plot.tip.hidden = !near;
  const lines = near ? near.marks.flatMap((mark) => linesOf(mark).map((line, i) => make("span", i ? "" : "muted", line))) : [];
  if (lines.length > LINES) lines.splice(LINES, Infinity, make("span", "muted", `and ${lines.length - LINES} more, see File`));
  const said = lines.map((line) => line.textContent).join("\n");
  if (plot.tip.said === said) return;
  plot.tip.said = said;
  plot.tip.replaceChildren(...lines);
}
