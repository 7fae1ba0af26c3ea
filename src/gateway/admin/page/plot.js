// Plots over time, on canvases.

import { bins, fitCanvas, ink, rule, shade, sizeOf, steps } from "./canvas.js";
import { drawMarks, showTip } from "./marks.js";
import { drawSoon, known, last, shownSpan, sum, view } from "./state.js";
import { clock, clockForm, clone, make, minuteForm, setText } from "./text.js";

/** Steps of 1, 2 or 5 times a power of ten, about three up to `most`. */
function axis(most, integers) {
  if (!(most > 0)) return { top: 1, step: 1 };
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  if (integers) step = Math.max(1, step);
  return { top: Math.ceil(most / step - 1e-9) * step, step };
}

/** Seconds between two times on the axis, by the seconds that it shows. */
const TICKS = { 60: 15, 120: 30, 300: 60, 600: 120 };

export class Plot {
  /** `series`: {label, ink, kind: area|line|limit|stack, fold, of(sample)}; a rare one is not in the legend while it is 0. */
  constructor({ title, series, format, axisFormat, integers }) {
    Object.assign(this, { title, series, format, axisFormat: axisFormat ?? format, integers });
    this.root = clone("plot");
    this.canvas = this.root.querySelector("canvas");
    this.root.querySelector("b").textContent = title;
    const legend = this.root.querySelector("ul");
    this.legend = series.map((each) => {
      const item = make("li");
      const swatch = make("i", each.kind);
      swatch.style.setProperty("--ink", `var(--${each.ink})`);
      const value = make("b");
      item.append(swatch, make("span", "", each.label), value);
      legend.append(item);
      return value;
    });
    this.canvas.addEventListener("pointermove", (event) => this.pointAt(event));
    this.canvas.addEventListener("pointerdown", (event) => this.pointAt(event));
    this.canvas.addEventListener("pointerleave", () => setCursor(null));
    this.root.addEventListener("focus", () => {
      view.plot = this;
    });
    this.root.addEventListener("blur", () => setCursor(null));
    this.root.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const now = last()?.time;
      if (event.key === "Escape") setCursor(null);
      if (!by || !now) return;
      event.preventDefault();
      view.plot = this;
      const to = (view.cursor ?? now) + (by * shownSpan()) / 60;
      setCursor(to >= now ? null : Math.max(now - shownSpan(), to));
    });
  }

  pointAt(event) {
    const now = last()?.time;
    if (!now || !this.area) return;
    const { left, width } = this.area;
    const part = (event.offsetX - left) / width;
    view.plot = this;
    setCursor(part < 0 || part > 1 ? null : now - shownSpan() * (1 - part));
  }

  draw() {
    const now = last()?.time;
    if (!now || sizeOf(this.canvas)[0] === 0) return;
    const { context, width, height } = fitCanvas(this.canvas);
    context.font = ink.font;
    const area = { top: 7, bottom: height - 18, left: 0, right: width - 1 };
    const { size, found } = bins(known.samples, this.series, width - 45, now);
    const stacked = this.series.some((each) => each.kind === "stack");
    const scale = this.scale(found, stacked);
    const labels = [];
    for (let value = 0; value <= scale.top * 1.001; value += scale.step) labels.push([value, this.axisFormat(value)]);
    area.left = Math.ceil(Math.max(26, ...labels.map(([, label]) => context.measureText(label).width))) + 7;
    area.width = area.right - area.left;
    this.area = area;
    const x = (time) => Math.min(area.right, Math.max(area.left, area.right - ((now - time) / shownSpan()) * area.width));
    const y = (value) => area.bottom - (Math.min(value, scale.top) / scale.top) * (area.bottom - area.top);

    this.drawGaps(context, area, x);
    this.drawAxes(context, area, labels, x, y, now);
    if (stacked) this.drawStack(context, found, x, y, size);
    else this.drawLines(context, found, x, y, size, scale);
    this.marks = drawMarks(context, area, x, now);
    this.tell(context, found, size, area, x, now, scale);
    showTip(this, view.plot === this && view.cursor !== null ? x(view.cursor) : null);
  }

  scale(found, stacked) {
    let most = 0;
    let limit = 0;
    for (const { values } of found) {
      if (stacked) most = Math.max(most, sum(values));
      else {
        values.forEach((value, i) => {
          if (this.series[i].kind === "limit") limit = Math.max(limit, value ?? 0);
          else most = Math.max(most, value ?? 0);
        });
      }
    }
    // A limit far above the values would flatten their curve. The legend shows it anyway.
    const hidden = limit > most * 5 && most > 0;
    const all = hidden ? most : Math.max(most, limit);
    return { ...axis(all * (stacked ? 1 : 1.04), this.integers), hidden };
  }

  drawAxes(context, area, labels, x, y, now) {
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const [value, label] of labels) {
      const at = Math.round(y(value)) + 0.5;
      context.strokeStyle = ink.grid;
      rule(context, area.left, at, area.right, at);
      context.fillStyle = ink.muted;
      context.fillText(label, area.left - 7, at);
    }
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    const every = TICKS[shownSpan()] ?? 120;
    const form = shownSpan() >= 300 ? minuteForm : clockForm;
    // Round times of the local clock, in any time zone.
    const shift = new Date(now * 1000).getTimezoneOffset() * 60;
    for (let t = Math.ceil((now - shownSpan() - shift) / every) * every + shift; t <= now; t += every) {
      const label = form.format(t * 1000);
      const half = context.measureText(label).width / 2;
      const at = x(t);
      context.strokeStyle = ink.grid;
      rule(context, Math.round(at) + 0.5, area.bottom, Math.round(at) + 0.5, area.bottom + 4);
      const underCursor = view.cursor !== null && Math.abs(at - x(view.cursor)) < half + 34;
      if (underCursor || at - half < area.left - 8 || at + half > area.right + 1) continue;
      context.fillText(label, at, area.bottom + 15);
    }
  }

  /** Marks the gaps: seconds without a sample, between seconds with one. */
  drawGaps(context, area, x) {
    context.fillStyle = ink.gap;
    let end = Infinity;
    for (const { time } of known.samples) {
      if (time - end > 3) context.fillRect(x(end), area.top, x(time - 1) - x(end), area.bottom - area.top);
      end = time;
    }
  }

  drawLines(context, found, x, y, size, scale) {
    context.lineJoin = "round";
    this.series.forEach((each, i) => {
      context.strokeStyle = ink[each.ink];
      context.lineWidth = each.kind === "limit" ? 1.25 : 1.5;
      context.setLineDash(each.kind === "limit" ? [5, 4] : []);
      if (each.kind === "area") shade(context, found, i, x, y, size);
      if (each.kind === "limit" && scale.hidden) return;
      steps(context, found, i, x, y, size);
    });
    context.setLineDash([]);
  }

  drawStack(context, found, x, y, size) {
    for (const bin of found) {
      const [from, to] = [x(bin.start), x(bin.start + size)];
      const thick = Math.max(1, to - from - (to - from > 4 ? 1 : 0.4));
      let below = 0;
      bin.values.forEach((value, i) => {
        if (!value) return;
        context.fillStyle = ink[this.series[i].ink];
        // Rare and important values stay visible.
        const tall = Math.max(y(below) - y(below + value), this.series[i].ink === "rejected" ? 1.5 : 0);
        context.fillRect(from, y(below) - tall, thick, tall);
        below += value;
      });
    }
  }

  /** Draws the cursor, and shows the values at the cursor, or now, in the legend. */
  tell(context, found, size, area, x, now, scale) {
    let values = this.series.map((each) => each.of(last()));
    if (view.cursor !== null) {
      const bin = found.find(({ start }) => view.cursor >= start && view.cursor < start + size);
      values = bin ? bin.values : this.series.map(() => null);
      const at = Math.round(x(view.cursor)) + 0.5;
      context.strokeStyle = context.fillStyle = ink.text;
      context.lineWidth = 1;
      rule(context, at, area.top, at, area.bottom);
      const label = clock(view.cursor);
      const half = context.measureText(label).width / 2 + 5;
      const middle = Math.min(area.right - half, Math.max(area.left + half, at));
      context.fillRect(middle - half, area.bottom + 2, half * 2, 16);
      context.fillStyle = ink.card;
      context.textAlign = "center";
      context.fillText(label, middle, area.bottom + 14);
    }
    this.legend.forEach((it, i) => {
      it.parentElement.hidden = Boolean(this.series[i].rare) && !found.some((bin) => bin.values[i]);
      const over = this.series[i].kind === "limit" && scale.hidden ? " ↑" : "";
      setText(it, (values[i] === null || values[i] === undefined ? "–" : this.format(values[i])) + over);
    });
    if (view.cursor === null) {
      const told = this.series.map((each, i) => `${each.label} ${this.legend[i].textContent}`).join(", ");
      this.canvas.setAttribute("aria-label", `${this.title}, now: ${told}`);
    }
  }
}

export function spark(canvas, of, color) {
  const now = last()?.time;
  if (!now || sizeOf(canvas)[0] === 0) return;
  const { context, width, height } = fitCanvas(canvas);
  const { size, found } = bins(known.samples, [{ of, fold: "most" }], width, now);
  const most = Math.max(...found.map(({ values }) => values[0] ?? 0), 0);
  const x = (time) => width - ((now - time) / shownSpan()) * width;
  const y = (value) => height - 1 - (most > 0 ? value / most : 0) * (height - 3);
  context.strokeStyle = ink[color];
  shade(context, found, 0, x, y, size);
  context.globalAlpha = most > 0 ? 1 : 0.4;
  context.lineWidth = 1.25;
  steps(context, found, 0, x, y, size);
}

function setCursor(time) {
  if (view.cursor === time) return;
  view.cursor = time;
  drawSoon();
}

/** Notes of each observed element's `card` whether it is near the screen. */
export const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) target.card.onScreen = isIntersecting;
  drawSoon();
}, { rootMargin: "200px" });
