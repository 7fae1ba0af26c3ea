// The keys with the most waiting requests.

import { actOnKey } from "./act.js";
import { last, limitsOf, planOf, roomOf } from "./state.js";
import { $, code, count, make, planMark, seconds, setText, showPlan, visible, whole } from "./text.js";

/** A row for a key with some numbers. Its name is a button that acts on it: `row.of` is the key. */
export function keyRow(body, numbers) {
  const row = body.insertRow();
  const name = make("th", "key");
  name.scope = "row";
  const button = make("button", "keyname");
  button.type = "button";
  button.append(code(""));
  button.addEventListener("click", () => actOnKey(row.of.zone, row.of));
  const of = make("small", "muted");
  of.append(make("span"), planMark());
  name.append(button, of, make("i", "fill"));
  row.append(name, ...Array.from({ length: numbers }, () => make("td")));
  return row;
}

/** Shows a key, where it is from, and a part of all as a bar. */
export function showKey(row, key, of, part, isBad) {
  row.of = key;
  const [button, from, fill] = row.cells[0].children;
  const text = key.key === "" ? "(no key)" : visible(key.key);
  setText(button.firstElementChild, text);
  if (button.title !== text) button.title = text;
  setText(from.firstElementChild, of);
  showPlan(from.lastElementChild, key.plan);
  fill.style.setProperty("--part", part.toFixed(3));
  fill.classList.toggle("full", isBad);
}

export function showKeys() {
  const { deepest } = last();
  const body = $("keys").tBodies[0];
  $("keys").hidden = deepest.length === 0;
  $("no-keys").hidden = deepest.length > 0;
  while (body.rows.length > deepest.length) body.deleteRow(-1);
  deepest.forEach((key, i) => {
    const row = body.rows[i] ?? keyRow(body, 2);
    const room = roomOf(limitsOf(key.zone), planOf(key.zone, key.plan));
    showKey(row, key, visible(key.zone), room ? Math.min(1, key.depth / room) : 0, Boolean(room) && key.depth >= room);
    const [, depth, oldest] = row.cells;
    setText(depth, room ? `${whole(key.depth)} / ${count(room)}` : whole(key.depth));
    setText(oldest, seconds(key.oldest_wait));
  });
}
