// What plots are drawn with: colours, bins of samples, lines and areas.

import { drawSoon, shownSpan, sum } from "./state.js";

export let ink = {};
export function readInk() {
  const style = getComputedStyle(document.documentElement);
  const names = ["card", "text", "muted", "grid", "passed", "delayed", "rejected", "cancelled", "elsewhere", "dry_run", "redirect", "client", "none", "limit", "deep", "mark", "gap"];
  ink = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  ink.font = `11px ${style.getPropertyValue("--sans")}`;
}

const fold = {
  mean: (values) => sum(values) / values.length,
  most: (values) => Math.max(...values),
  last: (values) => values.at(-1),
};

/** Groups the samples of the shown range into bins of some seconds, with one value per series. */
export function bins(samples, series, width, now) {
  const size = [1, 2, 5, 10].find((n) => (width * n) / shownSpan() >= 2.4) ?? 10;
  const found = [];
  let values;
  for (const sample of samples) {
    if (sample.time <= now - shownSpan() - size) continue;
    const start = Math.floor(sample.time / size) * size;
    if (found.at(-1)?.start !== start) {
      values = series.map(() => []);
      found.push({ start, values });
    }
    series.forEach((each, i) => {
      const value = each.of(sample);
      if (value !== null && value !== undefined) values[i].push(value);
    });
  }
  for (const bin of found) {
    bin.values = bin.values.map((all, i) => (all.length ? fold[series[i].fold](all) : null));
  }
  return { size, found };
}

const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) target.size = [Math.round(contentRect.width), Math.round(contentRect.height)];
  drawSoon();
});

/** The size of a canvas. To measure it in each frame would lay the page out for each plot. */
export function sizeOf(canvas) {
  if (!canvas.size) {
    canvas.size = [canvas.clientWidth, canvas.clientHeight];
    sizes.observe(canvas);
  }
  return canvas.size;
}

export function fitCanvas(canvas) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = sizeOf(canvas);
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

export function rule(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** Draws one series as steps; a missing value interrupts it. */
export function steps(context, all, i, x, y, size) {
  context.beginPath();
  let end = null;
  for (const bin of all) {
    const value = bin.values[i];
    if (value === null) {
      end = null;
      continue;
    }
    if (end === null || bin.start > end + 0.5) context.moveTo(x(bin.start), y(value));
    else context.lineTo(x(bin.start), y(value));
    end = bin.start + size;
    context.lineTo(x(end), y(value));
  }
  context.stroke();
}

/** Fills the area below the steps of one series. */
export function shade(context, all, i, x, y, size) {
  context.fillStyle = context.strokeStyle;
  context.globalAlpha = 0.16;
  for (const { start, values } of all) {
    const from = Math.round(x(start));
    if (values[i]) context.fillRect(from, y(values[i]), Math.round(x(start + size)) - from, y(0) - y(values[i]));
  }
  context.globalAlpha = 1;
}
