// The plot of an experiment: its levels, and each figure of its objective, over time.

const [TALL, GAP, LEFT] = [60, 30, 56];

function add(parent, tag, attributes, text) {
  const it = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) it.setAttribute(name, value);
  if (text !== undefined) it.textContent = text;
  parent?.append(it);
  return it;
}

const digits = (n) => String(Number(n.toPrecision(3)));
const FORMS = {
  rate: (n) => `${digits(n)} r/s`,
  permits: (n) => `${Math.round(n)}`,
  seconds: (n) => (n < 1 ? `${digits(n * 1000)} ms` : `${digits(n)} s`),
  share: (n) => `${digits(n * 100)} %`,
};

/** What is drawn one below the other. `of` finds the value of a step; `bound` is what it must stay within. */
function rowsOf(steps) {
  const rows = steps.slice(0, 1).map(({ find }) => ({ title: find === "rate" ? "rate" : "at once", form: FORMS[find], of: (step) => step.value }));
  const { figures } = steps.find((step) => step.figures.length) ?? { figures: [] };
  figures.forEach(({ name, unit, below }, nth) => {
    rows.push({ title: name, form: FORMS[unit], bound: below, of: (step) => step.figures[nth]?.value ?? null });
  });
  return rows;
}

/** The step that is under way has no figures yet. */
function stepsOf({ steps, current, took }) {
  if (!current) return steps;
  const past = steps.reduce((sum, step) => sum + step.took, 0);
  return [...steps, { ...current, verdict: "running", figures: [], took: Math.max(0, took - past), line: `${current.level} (${current.purpose})` }];
}

function drawRow(svg, row, steps, top, x, right) {
  const values = steps.map(row.of);
  const most = Math.max(...values.map((value) => value ?? 0));
  // What is far above the bound would flatten all that is below it.
  const high = (row.bound ? Math.min(Math.max(most, row.bound * 1.25), row.bound * 3) : most * 1.1) || 1;
  const bottom = top + TALL;
  const y = (value) => bottom - (Math.min(value, high) / high) * TALL;
  add(svg, "text", { x: LEFT, y: top - 7 }, row.bound ? `${row.title} (< ${row.form(row.bound)})` : row.title);
  add(svg, "line", { x1: LEFT, x2: right, y1: bottom, y2: bottom, class: "axis" });
  add(svg, "text", { x: LEFT - 6, y: top + 8, "text-anchor": "end" }, row.form(high));
  add(svg, "text", { x: LEFT - 6, y: bottom, "text-anchor": "end" }, "0");
  let at = 0;
  steps.forEach((step, nth) => {
    const from = x(at);
    at += step.took;
    const value = values[nth];
    if (value === null) return;
    const [width, height] = [Math.max(1, x(at) - from - 0.5), Math.max(1, bottom - y(value))];
    const bar = add(svg, "rect", { x: from.toFixed(1), y: (bottom - height).toFixed(1), width: width.toFixed(1), height: height.toFixed(1), class: step.verdict });
    add(bar, "title", {}, step.line.trim());
    // Not by its colour alone.
    if (step.verdict === "broke") add(svg, "text", { x: (from + width / 2).toFixed(1), y: (bottom - height - 1).toFixed(1), "text-anchor": "middle" }, "×");
  });
  if (row.bound) add(svg, "line", { x1: LEFT, x2: right, y1: y(row.bound), y2: y(row.bound), class: "bound" });
}

/** The plot as an SVG element of this width in pixels. */
export function findPlot(experiment, width) {
  const steps = stepsOf(experiment);
  const rows = rowsOf(steps);
  const took = Math.max(1, steps.reduce((sum, step) => sum + step.took, 0));
  const [right, tall] = [width - 24, rows.length * (TALL + GAP) + 18];
  const x = (at) => LEFT + (at / took) * (right - LEFT);
  const told = steps.map(({ line }) => line.trim()).join("; ");
  const svg = add(null, "svg", { viewBox: `0 0 ${width} ${tall}`, role: "img", "aria-label": `Steps of the experiment: ${told}` });
  rows.forEach((row, nth) => drawRow(svg, row, steps, nth * (TALL + GAP) + 22, x, right));
  for (const part of [0, 0.5, 1]) {
    const seconds = took * part;
    const label = took < 180 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
    add(svg, "text", { x: x(seconds), y: tall - 4, "text-anchor": "middle" }, label);
  }
  return svg;
}
