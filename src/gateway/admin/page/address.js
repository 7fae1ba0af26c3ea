// The address of the page keeps the zone and the time span, so that a link shows the same.

import { drawSoon, view } from "./state.js";

const SPANS = ["120", "600"];

function write() {
  const parts = new URLSearchParams();
  if (view.zone !== null) parts.set("zone", view.zone);
  parts.set("span", String(view.range));
  history.replaceState(null, "", `#${parts}`);
}

/** Notes which zone the reader looks at; null: none. */
export function visit(zone) {
  view.zone = zone;
  write();
}

function read() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const zone = parts.get("zone");
  const span = parts.get("span");
  if (SPANS.includes(span)) view.range = Number(span);
  for (const input of document.querySelectorAll("input[name=range]")) input.checked = Number(input.value) === view.range;
  view.zone = zone;
  view.reach = zone;
  if (zone !== null) view.toggled.set(zone, true);
  drawSoon();
}

/** Scrolls once to the zone of the address, when its card is there. */
export function reach(cards) {
  const card = cards.get(view.reach);
  if (!card) return;
  view.reach = null;
  card.root.scrollIntoView({ block: "nearest" });
}

export function startAddress() {
  read();
  addEventListener("hashchange", read);
  for (const input of document.querySelectorAll("input[name=range]")) {
    input.addEventListener("change", () => {
      view.range = Number(input.value);
      write();
      drawSoon();
    });
  }
}
