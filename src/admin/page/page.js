// The live page. All text from the gateway is inserted as text, never as markup.

const KEPT = 600; // seconds of history
const RECENT = 10; // samples that "now" averages over
const FEW = 5; // up to so many zones keep the file's order, with all plots open
const LISTED_AT_FIRST = 12; // zones listed before "Show more"
const LOST_AFTER = 3500; // ms without an event until the connection counts as lost
const ASK_EVERY = 5000; // ms between two requests for totals, origins and settings

const $ = (id) => document.getElementById(id);
const clone = (id) => $(id).content.firstElementChild.cloneNode(true);

function make(tag, className, text) {
  const it = document.createElement(tag);
  if (className) it.className = className;
  if (text !== undefined) it.textContent = text;
  return it;
}

/** Sets the text only if it changed, so that a selection in the page is kept. */
function setText(it, text) {
  if (it.textContent !== text) it.textContent = text;
}

function setState(it, state) {
  it.dataset.state = state;
}

// ---------------- numbers and text

/** 0, 9.8, 120, 12.3k, 1.2M */
function count(n) {
  if (!Number.isFinite(n)) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (n >= size * 0.9995) {
      const scaled = n / (unit === "k" ? 1e3 : size);
      return (scaled < 99.95 ? scaled.toFixed(1).replace(/\.0$/, "") : scaled.toFixed(0)) + unit;
    }
  }
  if (Number.isInteger(n)) return String(n);
  if (n >= 99.95) return n.toFixed(0);
  if (n >= 0.095) return n.toFixed(1).replace(/\.0$/, "");
  return String(Number(n.toPrecision(2)));
}

function whole(n) {
  return n < 100000 ? String(Math.round(n)) : count(n);
}

const pace = (n) => (Number.isFinite(n) ? `${count(n)} r/s` : "–");

function seconds(s) {
  if (s === null || s === undefined || !Number.isFinite(s)) return "–";
  if (s === 0) return "0 s";
  if (s < 0.00095) return "<1 ms";
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.995) return `${s.toFixed(2)} s`;
  if (s < 99.95) return `${s.toFixed(1)} s`;
  if (s < 5999.5) return `${Math.floor(Math.round(s) / 60)} min ${Math.round(s) % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

/** Axis labels are round values, so they need no trailing digits. */
function axisSeconds(s) {
  if (s === 0) return "0";
  if (s < 1) return `${Number((s * 1000).toPrecision(3))} ms`;
  if (s < 120) return `${Number(s.toPrecision(3))} s`;
  return s < 7200 ? `${Number((s / 60).toPrecision(3))} min` : `${Number((s / 3600).toPrecision(3))} h`;
}

const clockForm = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minuteForm = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clock = (unix) => clockForm.format(unix * 1000);

function ago(s) {
  const [size, unit] = [[86400, "days"], [3600, "h"], [60, "min"]].find(([size]) => s >= 1.5 * size) ?? [1, "s"];
  return `${Math.max(0, Math.round(s / size))} ${unit} ago`;
}

/** Shows invisible characters, and those that change the text direction, as code points. */
function visible(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** An element for data from the gateway: in a code font, left to right. */
function code(text) {
  const it = make("code", "", visible(text));
  it.dir = "ltr";
  return it;
}

/** Replaces the content of `it` with text and data (`{code}` or `{bold}`), if it changed. */
function say(it, ...parts) {
  const said = JSON.stringify(parts);
  if (it.said === said) return;
  it.said = said;
  it.replaceChildren(
    ...parts.flat().map((part) => {
      if (typeof part === "string") return part;
      return part.code !== undefined ? code(part.code) : make("b", "", visible(part.bold));
    }),
  );
}

// ---------------- state

const known = {
  samples: [], // oldest first; `zone` maps the name of each zone to its values
  settings: new Map(), // name -> zone of /api/zones
  rooms: new Map(), // name -> [[since, queue capacity of one key]...], oldest first
  rejectedFor: new Map(), // name -> the reason that grew most between the last two requests
  config: null,
  origins: [],
};
const view = { range: 600, cursor: null, find: "", all: false, toggled: new Map(), order: [], openFirst: new Set() };

const last = () => known.samples.at(-1);

function take(sample) {
  const before = last();
  if (before && sample.time <= before.time) return;
  sample.zone = new Map(sample.zones.map((zone) => [zone.name, zone]));
  sample.restarted = Boolean(before) && sample.seq < before.seq;
  sample.retuned = Boolean(before) && !sample.restarted && sample.reload !== before.reload;
  known.samples.push(sample);
  const oldest = sample.time - KEPT;
  while (known.samples[0].time < oldest) known.samples.shift();
}

/** Requests per second of one zone, averaged over the last seconds. */
function flow(name) {
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

const limitsOf = (name) => known.settings.get(name)?.limits ?? [];

/** How many requests of one key may wait: `burst` - `delay`, of the limit that allows most. */
function roomOf(limits) {
  const rooms = limits.filter((limit) => !limit.nodelay).map((limit) => limit.burst - (limit.delay ?? 0));
  return rooms.length ? Math.max(...rooms) : null;
}

function stateOf(zone, flowing) {
  if (flowing.rejected > 0) return "rejecting";
  if (zone.depth > 0) return "waiting";
  if (flowing.dry > 0) return "dry";
  return flowing.through > 0 ? "passing" : "idle";
}

/** The current zones, the most urgent first. */
function ranked() {
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

// ---------------- plots

let ink = {};
function readInk() {
  const style = getComputedStyle(document.documentElement);
  const names = ["card", "text", "muted", "grid", "passed", "delayed", "rejected", "cancelled", "dry_run", "limit", "deep", "mark", "gap"];
  ink = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  ink.font = `11px ${style.getPropertyValue("--sans")}`;
}

const sum = (values) => values.reduce((a, b) => a + b, 0);
const fold = {
  mean: (values) => sum(values) / values.length,
  most: (values) => Math.max(...values),
  last: (values) => values.at(-1),
};

/** Steps of 1, 2 or 5 times a power of ten, about three up to `most`. */
function axis(most, integers) {
  if (!(most > 0)) return { top: 1, step: 1 };
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  if (integers) step = Math.max(1, step);
  return { top: Math.ceil(most / step - 1e-9) * step, step };
}

/** Groups the samples of the shown range into bins of some seconds, with one value per series. */
function bins(samples, series, width, now) {
  const size = [1, 2, 5, 10].find((n) => (width * n) / view.range >= 2.4) ?? 10;
  const found = [];
  let values;
  for (const sample of samples) {
    if (sample.time <= now - view.range - size) continue;
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

function fitCanvas(canvas) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
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

function rule(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** Draws one series as steps; a missing value interrupts it. */
function steps(context, all, i, x, y, size) {
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
function shade(context, all, i, x, y, size) {
  context.fillStyle = context.strokeStyle;
  context.globalAlpha = 0.16;
  for (const { start, values } of all) {
    const from = Math.round(x(start));
    if (values[i]) context.fillRect(from, y(values[i]), Math.round(x(start + size)) - from, y(0) - y(values[i]));
  }
  context.globalAlpha = 1;
}

class Plot {
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
    this.root.addEventListener("blur", () => setCursor(null));
    this.root.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const now = last()?.time;
      if (event.key === "Escape") setCursor(null);
      if (!by || !now) return;
      event.preventDefault();
      const to = (view.cursor ?? now) + (by * view.range) / 60;
      setCursor(to >= now ? null : Math.max(now - view.range, to));
    });
  }

  pointAt(event) {
    const now = last()?.time;
    if (!now || !this.area) return;
    const { left, width } = this.area;
    const part = (event.offsetX - left) / width;
    setCursor(part < 0 || part > 1 ? null : now - view.range * (1 - part));
  }

  draw() {
    const now = last()?.time;
    if (!now || this.canvas.clientWidth === 0) return;
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
    const x = (time) => Math.min(area.right, Math.max(area.left, area.right - ((now - time) / view.range) * area.width));
    const y = (value) => area.bottom - (Math.min(value, scale.top) / scale.top) * (area.bottom - area.top);

    this.drawGaps(context, area, x);
    this.drawAxes(context, area, labels, x, y, now);
    if (stacked) this.drawStack(context, found, x, y, size);
    else this.drawLines(context, found, x, y, size, scale);
    this.drawMarks(context, area, x, now);
    this.tell(context, found, size, area, x, now, scale);
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
    const every = view.range === 600 ? 120 : 30;
    const form = view.range === 600 ? minuteForm : clockForm;
    // Round times of the local clock, in any time zone.
    const shift = new Date(now * 1000).getTimezoneOffset() * 60;
    for (let t = Math.ceil((now - view.range - shift) / every) * every + shift; t <= now; t += every) {
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

  drawMarks(context, area, x, now) {
    let free = -Infinity;
    for (const sample of known.samples) {
      if (!(sample.retuned || sample.restarted) || sample.time < now - view.range) continue;
      const at = Math.round(x(sample.time)) + 0.5;
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
      const word = sample.restarted ? "restart" : "reload";
      const wide = context.measureText(word).width;
      if (at + 6 + wide < area.right && at > free) {
        context.textAlign = "left";
        context.textBaseline = "middle";
        context.lineWidth = 3;
        context.lineJoin = "round";
        context.strokeStyle = ink.card;
        context.strokeText(word, at + 6, area.top - 1);
        context.fillText(word, at + 6, area.top - 1);
        free = at + wide + 14;
      }
    }
    context.textBaseline = "alphabetic";
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

/** Draws a small area chart without axes. */
function spark(canvas, of, color) {
  const now = last()?.time;
  if (!now || canvas.clientWidth === 0) return;
  const { context, width, height } = fitCanvas(canvas);
  const { size, found } = bins(known.samples, [{ of, fold: "most" }], width, now);
  const most = Math.max(...found.map(({ values }) => values[0] ?? 0), 0);
  const x = (time) => width - ((now - time) / view.range) * width;
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

// ---------------- one zone

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
      series: ["passed", "delayed", "dry_run", "cancelled", "rejected"].map((name) => ({
        label: name.replace("_", " "),
        ink: name,
        kind: "stack",
        rare: name === "dry_run" || name === "cancelled",
        fold: "mean",
        of: of((zone) => zone[name]),
      })),
    }),
  ];
}

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) target.card.onScreen = isIntersecting;
  drawSoon();
}, { rootMargin: "200px" });

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
      drawSoon();
    });
    const stats = this.root.querySelector(".stats");
    this.stats = ["depth", "oldest wait", "let through", "rejected"].map((label) => {
      const stat = make("span", "stat");
      const value = make("b", "", "–");
      stat.append(value, make("small", "", label));
      stats.append(stat);
      return value;
    });
    this.plots = null;
    this.open = null;
    seen.observe(this.root);
  }

  show(zone, open) {
    setState(this.root, zone.state);
    setState(this.pill, zone.state);
    setText(this.pill.firstElementChild, zone.state === "dry" ? "dry run" : zone.state);
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
    if (open) this.showSettings();
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
      if (limit.max_wait_seconds !== null) parts.push("  max_wait ", { bold: seconds(limit.max_wait_seconds) });
      if (limit.dry_run) parts.push({ bold: "  dry run" });
      return item(...parts);
    });
    list.replaceChildren(item(...own), ...limits);
  }

  draw() {
    if (!this.onScreen || this.root.hidden) return;
    const color = { rejecting: "rejected", idle: "cancelled" }[this.root.dataset.state] ?? "delayed";
    spark(this.spark, (sample) => sample.zone.get(this.name)?.depth, color);
    if (this.open) this.plots.forEach((plot) => plot.draw());
  }
}

const cards = new Map();

function showZones(zones) {
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
  const listed = new Set(view.all || view.find ? wanted : wanted.slice(0, LISTED_AT_FIRST));
  for (const [name, card] of cards) {
    card.root.hidden = !listed.has(name);
    card.show(byName.get(name), view.toggled.get(name) ?? view.openFirst.has(name));
  }
  $("find").hidden = !many;
  $("zones-section").hidden = zones.length === 0;
  const more = wanted.length - listed.size;
  $("more").hidden = more === 0;
  setText($("more"), `Show ${more} more zones`);
  const all = many ? `${zones.length}, the most urgent first` : String(zones.length);
  setText($("zones-count"), view.find ? `${wanted.length} of ${zones.length}` : all);
}

// ---------------- summary: what waits, how long, why, and which setting changes it

const REASONS = {
  burst: ["the queue is full: ", { code: "burst" }, " reached"],
  max_wait: ["requests would wait longer than ", { code: "max_wait" }],
  keys: ["the zone holds ", { code: "max_keys" }, " keys, and each has waiting requests"],
  store: ["the store cannot be reached"],
  restart: ["a part of the gateway failed and was restarted; see the log"],
  stopping: ["the gateway is stopping"],
};

function span(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return least === most ? count(most) : `${count(least)} to ${count(most)}`;
}

/** The longest wait that a zone's settings allow. */
function longestWait(settings) {
  const waits = settings.limits
    .filter((limit) => !limit.nodelay)
    .map((limit) => Math.min((limit.burst - (limit.delay ?? 0)) / settings.rate_per_second, limit.max_wait_seconds ?? Infinity));
  return waits.length ? Math.max(...waits) : 0;
}

function turnFor(zone, settings, reason) {
  if (!settings || !settings.limits.length) return [];
  const rate = [{ code: "rate" }, ` (${settings.rate})`];
  const bursts = settings.limits.map((limit) => limit.burst);
  const burst = [{ code: "burst" }, ` (${span(bursts)})`];
  if (reason === "max_wait") return ["Raise ", ...rate, " to let requests leave sooner, or raise ", { code: "max_wait" }, " to let them wait longer."];
  if (reason === "keys") return ["Raise ", { code: "max_keys" }, ` (${count(settings.max_keys)}) to hold more keys.`];
  if (reason === "store" || reason === "restart" || reason === "stopping") return [];
  const longest = longestWait(settings);
  if (zone.state === "rejecting") {
    const more = longest > 0
      ? [": more requests then wait instead of being rejected (now up to ", { bold: seconds(longest) }, ")."]
      : [": more requests then pass at once."];
    return ["If the origin can handle more, raise ", ...rate, ". Otherwise raise ", ...burst, ...more];
  }
  return ["If the wait is too long, raise ", ...rate, " if the origin can handle more, or lower ", ...burst, " to reject sooner."];
}

const requests = (n) => (Math.round(n) === 1 ? "1 request" : `${whole(n)} requests`);

/** An origin that failed at least half of the latest requests, even if its servers count as healthy. */
function failing() {
  const [first, ...rest] = known.samples.slice(-RECENT - 1);
  for (const now of rest.length ? last().origins : []) {
    const before = first.origins.find((origin) => origin.name === now.name);
    const [failed, answered] = before ? [now.failed - before.failed, now.answered - before.answered] : [0, 0];
    if (failed > 0 && failed >= answered) return { name: now.name, failed, answered };
  }
  return null;
}

function answer(zones) {
  const sample = last();
  const down = sample.origins.find((origin) => origin.servers > 0 && origin.healthy === 0);
  const first = zones[0];
  if (down) {
    const why = "Its requests get 503 until a server is healthy again.";
    return { state: "rejecting", what: ["Origin ", { bold: down.name }, " has no healthy server"], why: [why], turn: ["See Origins."] };
  }
  const fails = failing();
  if (fails) {
    const share = `${whole(fails.failed)} of ${requests(fails.failed + fails.answered)} got no response in the last ${RECENT} s`;
    const turn = ["See Origins and the log. A higher rate would not help."];
    return { state: "rejecting", what: ["Origin ", { bold: fails.name }, " does not respond"], why: [`${share}: the origin was not reached, broke the connection, or took too long.`], turn };
  }
  if (!first) return { state: "idle", what: ["No zones: nothing is limited"], why: ["The file has no zone, so every request passes."], turn: [] };
  const settings = known.settings.get(first.name);
  const deepest = sample.deepest.find((key) => key.zone === first.name);
  const who = deepest
    ? ["The deepest key, ", { code: short(deepest.key) }, ", has ", { bold: whole(deepest.depth) }, ` waiting, the oldest for ${seconds(deepest.oldest_wait)}.`]
    : [];
  const also = zones.filter((zone) => zone !== first && (zone.state === "rejecting" || zone.state === "waiting"));
  const others = also.length ? [" Also: ", ...listed(also.map((zone) => [{ bold: short(zone.name) }, ` ${zone.state}`]))] : [];
  if (first.state === "rejecting") {
    const reason = known.rejectedFor.get(first.name) ?? "burst";
    const what = first.depth > 0
      ? ` rejects ${pace(first.flowing.rejected)}; ${requests(first.depth)} wait${first.depth === 1 ? "s" : ""} up to ${seconds(first.oldest_wait)}`
      : ` rejected ${requests(first.flowing.rejections)} in the last ${RECENT} s; no requests wait now`;
    return { state: "rejecting", what: [{ bold: first.name }, what], why: ["Why: ", ...(REASONS[reason] ?? [reason]), ". ", ...who, ...others], turn: turnFor(first, settings, reason) };
  }
  if (first.state === "waiting") {
    const what = [`${requests(first.depth)} wait${first.depth === 1 ? "s" : ""} in `, { bold: first.name }, `, the oldest for ${seconds(first.oldest_wait)}`];
    const why = [settings ? `Requests come in faster than ${settings.rate} per key; none are rejected. ` : "", ...who, ...others];
    return { state: "waiting", what, why, turn: turnFor(first, settings) };
  }
  const dry = zones.filter((zone) => zone.state === "dry");
  const through = sum(zones.map((zone) => zone.flowing.through));
  const rejected = known.samples.findLast((it) => it.zones.some((zone) => zone.rejected > 0));
  const why = [
    through > 0 ? `${pace(through)} let through in ${zones.length === 1 ? "the zone" : `${zones.length} zones`}. ` : "No requests in the last seconds. ",
    rejected ? `The last rejection was at ${clock(rejected.time)}.` : "No rejections in the last 10 minutes.",
  ];
  if (dry.length) why.push(" Dry run would have limited requests in ", ...listed(dry.map((zone) => [{ bold: short(zone.name) }])));
  return { state: "passing", what: ["No requests are waiting"], why, turn: [] };
}

/** Lists the first three, with commas and a full stop. */
function listed(all) {
  const first = all.slice(0, 3).flatMap((one, i) => [i ? ", " : "", ...one]);
  return [...first, all.length > 3 ? ` and ${all.length - 3} more.` : "."];
}

function short(text) {
  return text.length > 48 ? `${text.slice(0, 47)}…` : text;
}

function showAnswer(zones) {
  const { state, what, why, turn } = answer(zones);
  setState($("answer"), state);
  say($("what"), ...what);
  say($("why"), ...why);
  say($("turn"), ...turn);
  // A screen reader announces changes of state, not each number.
  const kind = `${state} ${state === "passing" ? "" : zones[0]?.name}`;
  if ($("spoken").dataset.kind !== kind) {
    $("spoken").dataset.kind = kind;
    $("spoken").textContent = $("what").textContent;
  }
  const depth = sum(zones.map((zone) => zone.depth));
  document.title = depth > 0 ? `(${whole(depth)}) drip` : "drip";
}

// ---------------- totals

const over = (pick, join = (a, b) => a + b) => (sample) => sample.zones.map(pick).reduce((a, b) => join(a, b), 0);
const inZones = (zones) => (zones.length > 1 ? `· in ${zones.length} zones` : "");
const TOTALS = [
  { label: "waiting", ink: "delayed", of: over((zone) => zone.depth), tell: (zones) => whole(sum(zones.map((zone) => zone.depth))), more: inZones },
  { label: "oldest wait", ink: "deep", of: over((zone) => zone.oldest_wait, Math.max), tell: (zones) => seconds(Math.max(0, ...zones.map((zone) => zone.oldest_wait))) },
  { label: "let through", ink: "passed", of: over((zone) => zone.passed + zone.delayed), tell: (zones) => pace(sum(zones.map((zone) => zone.flowing.through))), more: inZones },
  {
    label: "rejected",
    ink: "rejected",
    of: over((zone) => zone.rejected),
    tell: (zones) => pace(sum(zones.map((zone) => zone.flowing.rejected))),
    more: (zones) => {
      const rejected = sum(zones.map((zone) => zone.flowing.rejected));
      const part = (100 * rejected) / (rejected + sum(zones.map((zone) => zone.flowing.through)));
      return rejected > 0 ? `· ${part < 1 ? "<1" : Math.round(part)}% of all` : "";
    },
  },
];

function makeTotals() {
  for (const total of TOTALS) {
    const tile = make("div", "card tile");
    total.value = make("dd", "", "–");
    total.extra = make("small", "muted");
    total.canvas = make("canvas", "spark");
    total.canvas.setAttribute("aria-hidden", "true");
    const label = make("dt", "", total.label);
    label.append(" ", total.extra);
    tile.append(label, total.value, total.canvas);
    $("totals").append(tile);
  }
}

function showTotals(zones) {
  for (const total of TOTALS) {
    setText(total.value, total.tell(zones));
    setText(total.extra, total.more?.(zones) ?? "");
    spark(total.canvas, total.of, total.ink);
  }
}

// ---------------- keys, origins, file

function showKeys() {
  const { deepest } = last();
  const body = $("keys").tBodies[0];
  $("keys").hidden = deepest.length === 0;
  $("no-keys").hidden = deepest.length > 0;
  while (body.rows.length > deepest.length) body.deleteRow(-1);
  deepest.forEach((key, i) => {
    let row = body.rows[i];
    if (!row) {
      row = body.insertRow();
      const name = make("th", "key");
      name.scope = "row";
      name.append(code(""), make("small", "muted"), make("i", "fill"));
      row.append(name, make("td"), make("td"));
    }
    const [name, depth, oldest] = row.cells;
    const text = visible(key.key);
    setText(name.children[0], text);
    if (name.title !== text) name.title = text;
    setText(name.children[1], visible(key.zone));
    const room = roomOf(limitsOf(key.zone));
    name.children[2].style.setProperty("--part", room ? String(Math.min(1, key.depth / room)) : "0");
    name.children[2].classList.toggle("full", Boolean(room) && key.depth >= room);
    setText(depth, room ? `${whole(key.depth)} / ${count(room)}` : whole(key.depth));
    setText(oldest, seconds(key.oldest_wait));
  });
}

/** Values that change each second come with the samples, addresses and totals with /api/origins. */
function showOrigins() {
  const list = $("origins");
  const live = new Map((last()?.origins ?? []).map((origin) => [origin.name, origin]));
  const parts = known.origins.map((origin) => {
    const now = live.get(origin.name);
    const inFlight = now?.in_flight ?? origin.in_flight;
    const limit = origin.max_in_flight ? ` of ${count(origin.max_in_flight)}` : "";
    return { name: origin.name, told: `${whole(inFlight)}${limit} in flight`, servers: origin.servers };
  });
  const said = JSON.stringify(parts);
  if (list.said === said) return;
  list.said = said;
  list.replaceChildren(
    ...parts.map(({ name, told, servers }) => {
      const origin = make("section", "origin");
      const title = make("h3");
      title.append(make("span", "name", visible(name)), make("span", "muted", told));
      const rows = make("ul");
      for (const server of servers) {
        const row = make("li");
        const pill = make("span", "pill");
        setState(pill, server.healthy ? "passing" : "rejecting");
        pill.append(make("span", "", server.healthy ? "healthy" : "unhealthy"));
        const sums = make("small", "muted", `${count(server.answered)} answered, ${count(server.failed)} failed`);
        row.append(code(server.url), pill, sums);
        rows.append(row);
      }
      origin.append(title, rows);
      return origin;
    }),
  );
}

function showFile() {
  const { config } = known;
  if (!config) return;
  const now = last()?.time ?? 0;
  const loaded = Date.parse(config.loaded_at) / 1000;
  const rows = [
    ["name", config.file],
    ["in force since", `${clock(loaded)}, ${ago(now - loaded)}`],
    ["reloads", String(last()?.reload ?? 0)],
    ["state", last()?.error ? "has an error; previous settings in force" : "in force"],
  ];
  const list = $("file");
  rows.forEach(([label, value], i) => {
    let cell = list.children[i * 2 + 1];
    if (!cell) {
      cell = make("dd");
      list.append(make("dt", "", label), cell);
    }
    setText(cell, visible(value));
    cell.classList.toggle("bad", label === "state" && Boolean(last()?.error));
  });
  setText($("settings").querySelector("pre"), config.settings);
  setText($("version"), config.version);
}

// ---------------- notices

/** Shows one notice per kind, with a title and lines; without a title, removes it. */
function notice(kind, title, lines = []) {
  const said = JSON.stringify([title, lines]);
  let it = [...$("notices").children].find((each) => each.dataset.about === kind);
  if (!title) {
    it?.remove();
    return;
  }
  if (!it) {
    it = make("div", "notice");
    it.dataset.about = kind;
    it.dataset.kind = kind === "stopping" ? "wait" : "bad";
    it.setAttribute("role", kind === "stopping" ? "status" : "alert");
    $("notices").append(it);
  }
  if (it.said === said) return;
  it.said = said;
  const list = make("ul");
  list.append(...lines.map((parts) => {
    const line = make("li");
    say(line, ...parts);
    return line;
  }));
  it.replaceChildren(make("b", "", title), ...(lines.length ? [list] : []));
}

function showNotices() {
  const sample = last();
  const error = sample?.error;
  let lines = [];
  if (error) {
    const told = known.config?.error?.problems ?? [];
    // Each sample has only the first problem. The others come from a request to the API.
    const same = told.length > 0 && told[0].line === error.line && told[0].message === error.message;
    const problems = same ? told : [error];
    lines = problems.slice(0, 5).map(({ line, column, message }) => [{ bold: `line ${line}${column ? `, column ${column}` : ""}` }, `: ${visible(message)}`]);
    if (problems.length > 5) lines.push([`and ${problems.length - 5} more`]);
  }
  const file = known.config?.file ?? "The file";
  notice("file", error && `${visible(file)} has an error; the previous settings stay in force`, lines);
  notice("stopping", sample?.stopping && "The gateway is stopping: it accepts no new connections, and the queues drain at their rate.");
}

function showLink() {
  const lost = link.lostSince !== null;
  const stopping = last()?.stopping;
  document.body.classList.toggle("gone", lost && known.samples.length > 0);
  const state = lost ? "rejecting" : !last() ? "waits" : stopping ? "waiting" : "passing";
  setState($("link"), state);
  setText($("link").firstElementChild, lost ? "offline" : !last() ? "connecting" : stopping ? "stopping" : "live");
  notice("gone", lost && (last()
    ? `No data from the gateway since ${clock(last().time)}. The values below are from then. This page keeps trying to connect.`
    : "No data from the gateway. This page keeps trying to connect."));
}

// ---------------- drawing

let drawing = false;
function drawSoon() {
  if (drawing || document.hidden) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}

function draw() {
  showLink();
  if (!last()) return;
  const zones = ranked();
  showNotices();
  showAnswer(zones);
  showTotals(zones);
  showZones(zones);
  showKeys();
  showOrigins();
  showFile();
  for (const card of cards.values()) card.draw();
}

// ---------------- requests to the API

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let asking = false;
async function askAll() {
  if (asking) return;
  asking = true;
  try {
    const [zones, config, origins] = await Promise.all([ask("api/zones"), ask("api/config"), ask("api/origins")]);
    takeSettings(zones.zones);
    known.config = config;
    known.origins = origins.origins;
  } catch {
    // The stream shows whether the gateway is reachable, and the next request comes soon.
  }
  asking = false;
  drawSoon();
}

function takeSettings(zones) {
  const time = last()?.time ?? 0;
  for (const zone of zones) {
    const before = known.settings.get(zone.name);
    zone.said = JSON.stringify([zone.key, zone.rate, zone.algorithm, zone.limits]);
    if (before) {
      const grown = Object.entries(zone.rejections)
        .map(([reason, n]) => [reason, n - (before.rejections[reason] ?? 0)])
        .sort((a, b) => b[1] - a[1])[0];
      if (grown && grown[1] > 0) known.rejectedFor.set(zone.name, grown[0]);
    }
    const room = roomOf(zone.limits);
    const rooms = known.rooms.get(zone.name) ?? [];
    if (rooms.length === 0 || rooms.at(-1)[1] !== room) rooms.push([time, room]);
    known.rooms.set(zone.name, rooms.filter((_, i) => i === rooms.length - 1 || rooms[i + 1][0] > time - KEPT));
  }
  known.settings = new Map(zones.map((zone) => [zone.name, zone]));
}

// ---------------- the stream

const link = { source: null, heard: Date.now(), lostSince: null, again: 500, retry: null };

function heard() {
  link.heard = Date.now();
  link.again = 500;
  const wasLost = link.lostSince !== null;
  link.lostSince = null;
  if (wasLost) askAll();
}

function lost() {
  link.lostSince ??= Date.now();
  drawSoon();
}

function connect() {
  clearTimeout(link.retry);
  link.source?.close();
  link.heard = Date.now();
  const since = last()?.seq;
  const source = new EventSource(since === undefined ? "api/live" : `api/live?since=${since}`);
  link.source = source;
  source.addEventListener("history", ({ data }) => {
    heard();
    JSON.parse(data).samples.forEach(take);
    drawSoon();
  });
  source.addEventListener("sample", ({ data }) => {
    heard();
    const sample = JSON.parse(data);
    const before = last();
    take(sample);
    const changed = (a, b) => JSON.stringify(a) !== JSON.stringify(b);
    const healthy = (it) => it.origins.map((origin) => [origin.name, origin.healthy]);
    if (!before || sample.reload !== before.reload || changed(sample.error, before.error) || changed(healthy(sample), healthy(before))) askAll();
    drawSoon();
  });
  source.addEventListener("error", () => {
    lost();
    // The browser reconnects by itself, except after a response that is not a stream.
    if (source.readyState === EventSource.CLOSED) retryLater();
  });
}

function retryLater() {
  clearTimeout(link.retry);
  link.retry = setTimeout(() => connect(), link.again);
  link.again = Math.min(5000, link.again * 2);
}

/** Detects a dead connection that looks open, as after sleep: no events arrive. */
function watch() {
  const silent = Date.now() - link.heard;
  if (silent < LOST_AFTER) return;
  lost();
  if (silent > 2 * LOST_AFTER) connect();
}

// ---------------- start

makeTotals();
readInk();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readInk();
  drawSoon();
});
addEventListener("resize", drawSoon);
document.addEventListener("visibilitychange", () => {
  watch();
  drawSoon();
});
addEventListener("online", () => connect());
for (const input of document.querySelectorAll("input[name=range]")) {
  if (input.checked) view.range = Number(input.value);
  input.addEventListener("change", () => {
    view.range = Number(input.value);
    drawSoon();
  });
}
$("find").addEventListener("input", ({ target }) => {
  view.find = target.value.trim().toLowerCase();
  drawSoon();
});
$("more").addEventListener("click", () => {
  view.all = true;
  drawSoon();
});
setInterval(watch, 1000);
setInterval(() => {
  if (!document.hidden && link.lostSince === null) askAll();
}, ASK_EVERY);
connect();
askAll();
