// Numbers, text and elements. All text from the gateway is inserted as text, never as markup.

export const $ = (id) => document.getElementById(id);
export const clone = (id) => $(id).content.firstElementChild.cloneNode(true);

export function make(tag, className, text) {
  const it = document.createElement(tag);
  if (className) it.className = className;
  if (text !== undefined) it.textContent = text;
  return it;
}

/** Sets the text only if it changed, so that a selection in the page is kept. */
export function setText(it, text) {
  if (it.textContent !== text) it.textContent = text;
}

export function setState(it, state) {
  it.dataset.state = state;
}

/** 0, 9.8, 120, 12.3k, 1.2M */
export function count(n) {
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

export function whole(n) {
  return n < 100000 ? String(Math.round(n)) : count(n);
}

export const percent = (part, all) => (part > 0 && part / all < 0.01 ? "<1%" : `${Math.round((100 * part) / (all || 1))}%`);
export const pace = (n) => (Number.isFinite(n) ? `${count(n)} r/s` : "–");

/** 0 B, 512 B, 1.5 KB, 64 MB; each unit is 1024 of the next smaller one, as in the file. */
export function bytes(n) {
  const [size, unit] = [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]].find(([size]) => n >= size) ?? [1, "B"];
  const scaled = n / size;
  return `${scaled < 99.95 ? scaled.toFixed(1).replace(/\.0$/, "") : scaled.toFixed(0)} ${unit}`;
}

export function seconds(s) {
  if (s === null || s === undefined || !Number.isFinite(s)) return "–";
  if (s === 0) return "0 s";
  if (s < 0.00095) return "<1 ms";
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.995) return `${s.toFixed(2)} s`;
  if (s < 99.95) return `${s.toFixed(1)} s`;
  if (s < 5999.5) return `${Math.floor(Math.round(s) / 60)} min${Math.round(s) % 60 ? ` ${Math.round(s) % 60} s` : ""}`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

/** Axis labels are round values, so they need no trailing digits. */
export function axisSeconds(s) {
  if (s === 0) return "0";
  if (s < 1) return `${Number((s * 1000).toPrecision(3))} ms`;
  if (s < 120) return `${Number(s.toPrecision(3))} s`;
  return s < 7200 ? `${Number((s / 60).toPrecision(3))} min` : `${Number((s / 3600).toPrecision(3))} h`;
}

export const clockForm = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
export const minuteForm = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
export const clock = (unix) => clockForm.format(unix * 1000);

export function ago(s) {
  const [size, unit] = [[86400, "days"], [3600, "h"], [60, "min"]].find(([size]) => s >= 1.5 * size) ?? [1, "s"];
  return `${Math.max(0, Math.round(s / size))} ${unit} ago`;
}

/** Shows invisible characters, and those that change the text direction, as code points. */
export function visible(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** An element for data from the gateway: in a code font, left to right. */
export function code(text) {
  const it = make("code", "", visible(text));
  it.dir = "ltr";
  return it;
}

/** A mark that names the plan of a key; see `showPlan`. */
export const planMark = () => make("span", "plan");

export function showPlan(it, plan) {
  it.hidden = !plan;
  it.title = plan ? visible(plan) : "";
  say(it, ...(plan ? ["plan ", { bold: plan }] : []));
}

/** Replaces the content of `it` with text and data (`{code}` or `{bold}`), if it changed. */
export function say(it, ...parts) {
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

/** Shows a sentence of the gateway, in which settings are between backticks. */
export function tell(it, text) {
  const parts = text.split("`");
  say(it, ...(parts.length % 2 ? parts.map((part, i) => (i % 2 ? { code: part } : visible(part))) : [visible(text)]));
}

/** Numbers by name in a line, such as `2xx 8.6k, 5xx 12`. */
export const listOf = (counts, form = count) => Object.entries(counts).filter(([, n]) => n > 0).map(([name, n]) => `${visible(name)} ${form(n)}`).join(", ");

/** Adds numbers with labels below them to a list, and returns where the numbers go. */
export function stats(list, labels) {
  return labels.map((label) => {
    const stat = make("span", "stat");
    const value = make("b", "", "–");
    stat.append(value, make("small", "", label));
    list.append(stat);
    return value;
  });
}

/** Shows rows of a label, a value and whether it is bad in a `dl`. */
export function showFacts(list, rows) {
  while (list.children.length > rows.length * 2) list.lastChild.remove();
  rows.forEach(([label, value, isBad], i) => {
    if (!list.children[i * 2]) list.append(make("dt"), make("dd"));
    setText(list.children[i * 2], visible(label));
    setText(list.children[i * 2 + 1], visible(value));
    list.children[i * 2 + 1].classList.toggle("bad", Boolean(isBad));
  });
}

export function short(text) {
  return text.length > 48 ? `${text.slice(0, 47)}…` : text;
}

/** Where a problem is: `conf.d/a.toml, line 3, column 8`; in the file itself without its name. */
export function placeOf({ file, line, column }) {
  const parts = [file && visible(file), line && `line ${line}`, column && `column ${column}`];
  return parts.filter(Boolean).join(", ");
}

/** ` instead of 10r/s`; nothing if the file says nothing. */
export const instead = (file) => (file ? ` instead of ${visible(String(file))}` : "");
