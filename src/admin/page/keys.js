// The keys with the most waiting requests.

import { actOnKey } from "./act.js";
import { last, limitsOf, planOf, roomOf } from "./state.js";
import { $, code, count, make, planMark, seconds, setText, showPlan, visible, whole } from "./text.js";

function newRow(body) {
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
  row.append(name, make("td"), make("td"));
  return row;
}

export function showKeys() {
  const { deepest } = last();
  const body = $("keys").tBodies[0];
  $("keys").hidden = deepest.length === 0;
  $("no-keys").hidden = deepest.length > 0;
  while (body.rows.length > deepest.length) body.deleteRow(-1);
  deepest.forEach((key, i) => {
    const row = body.rows[i] ?? newRow(body);
    row.of = key;
    const [name, depth, oldest] = row.cells;
    const [button, of, fill] = name.children;
    const text = visible(key.key);
    setText(button.firstElementChild, text);
    if (button.title !== text) button.title = text;
    const [zone, plan] = of.children;
    setText(zone, visible(key.zone));
    showPlan(plan, key.plan);
    const room = roomOf(limitsOf(key.zone), planOf(key.zone, key.plan));
    fill.style.setProperty("--part", room ? String(Math.min(1, key.depth / room)) : "0");
    fill.classList.toggle("full", Boolean(room) && key.depth >= room);
    setText(depth, room ? `${whole(key.depth)} / ${count(room)}` : whole(key.depth));
    setText(oldest, seconds(key.oldest_wait));
  });
}
