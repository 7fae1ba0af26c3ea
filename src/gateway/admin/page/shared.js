// The line of an origin whose routes collapse: what clients received, what the origin got, and what is kept.

import { last, recent } from "./state.js";
import { bytes, count, pace, say, seconds } from "./text.js";

/** What the routes of an origin share, averaged over the last seconds; null if none of them collapses. */
function sharedNow(name) {
  if (!last()?.origin.get(name)?.shared) return null;
  const all = { received: 0, sent: 0, stale: 0, evicted: 0 };
  let [counted, wait] = [0, null];
  for (const sample of recent()) {
    const shared = sample.origin.get(name)?.shared;
    if (!shared) continue;
    counted++;
    all.received += shared.received;
    all.sent += shared.sent;
    all.stale += shared.requests.stale ?? 0;
    all.evicted += sample.shared_answers?.evicted ?? 0;
    wait = shared.wait_p99 ?? wait;
  }
  for (const what of Object.keys(all)) all[what] /= counted;
  return { ...all, wait };
}

function shareOf({ received, sent }) {
  const part = Math.max(0, 1 - sent / received);
  if (part > 0 && part < 0.01) return "<1 %";
  return part > 0.99 && part < 1 ? ">99 %" : `${Math.round(100 * part)} %`;
}

export function showShared(line, name) {
  const now = sharedNow(name);
  line.hidden = !now;
  if (!now) return;
  const told = now.received > 0 ? [{ bold: pace(now.received) }, " received, ", { bold: pace(now.sent) }, " sent: ", { bold: shareOf(now) }, " shared"] : ["No requests to share"];
  if (now.stale > 0) told.push(", ", { bold: pace(now.stale) }, " stale");
  if (now.wait !== null) told.push(", waits p99 ", { bold: seconds(now.wait) });
  const kept = last().shared_answers;
  if (kept) told.push("; ", { bold: bytes(kept.bytes) }, ` of ${bytes(kept.max_bytes)} kept`);
  if (now.evicted > 0) told.push(", ", { bold: `${count(now.evicted)}/s` }, " evicted");
  say(line, ...told);
}
