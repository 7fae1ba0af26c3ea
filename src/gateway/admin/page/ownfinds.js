// The experiments that this page has started, which it renews: else the gateway ends them.

import { send } from "./send.js";
import { drawSoon, known } from "./state.js";

const EVERY = 2000; // ms; the gateway waits for 15 s
const NAME = "drip.find";

/** The number of the experiment of each origin. It outlives a reload of the page. */
const own = new Map(kept());
let renewing = false;
let renewed = 0;

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME)) ?? [];
  } catch {
    return [];
  }
}

function keep() {
  try {
    sessionStorage.setItem(NAME, JSON.stringify([...own]));
  } catch {
    // A browser that forbids storage: a reload of the page ends the experiment.
  }
}

export const isOwn = ({ origin, id }) => own.get(origin) === id;

/** Renews an experiment from now on. */
export function ownFind(it) {
  own.set(it.origin, it.id);
  keep();
  take(it);
}

/** Keeps what an experiment has come to. */
export function take(it) {
  known.finds.set(it.origin, it);
  if (isOwn(it) && it.state !== "running" && own.delete(it.origin)) keep();
  drawSoon();
}

/** Called with each sample, because a page in the background has slow timers. */
export async function renewFinds() {
  if (renewing || own.size === 0 || Date.now() - renewed < EVERY) return;
  [renewing, renewed] = [true, Date.now()];
  for (const [origin, id] of own) {
    try {
      take(await send("PUT", `api/find/${encodeURIComponent(origin)}`, { id }));
    } catch (error) {
      // It is no more: the gateway was restarted, or another one has begun.
      if (error.status >= 400 && own.delete(origin)) keep();
    }
  }
  renewing = false;
}
