// The store of shared zones: whether it answers, how fast, and whose settings differ.

import { known, last, recent } from "./state.js";
import { $, listOf, pace, seconds, setState, setText, showFacts, visible } from "./text.js";

export function showStore() {
  const { store } = last();
  $("store-card").hidden = !store;
  if (!store) return;
  const told = known.store;
  const pill = $("store-state");
  const differs = store.differs ?? [];
  setState(pill, !store.up ? "rejecting" : differs.length ? "waiting" : "passing");
  setText(pill.firstElementChild, store.up ? "up" : "out");
  setText($("store-url"), told ? visible(told.url) : "");
  const samples = recent().filter((sample) => sample.store);
  const operations = {};
  for (const sample of samples) {
    for (const [result, n] of Object.entries(sample.store.operations)) operations[result] = (operations[result] ?? 0) + n / samples.length;
  }
  const latest = samples.findLast((sample) => sample.store.latency.p50 !== null)?.store.latency;
  const rows = [
    !store.up && ["out for", `${seconds(Math.floor(store.out_for ?? 0))}${store.reason ? `: ${store.reason}` : ""}`, true],
    ["round trip", latest ? `p50 ${seconds(latest.p50)}, p99 ${seconds(latest.p99)}` : "–"],
    ["operations", listOf(operations, pace) || "none"],
    differs.length > 0 && ["differs", `another gateway has another rate for ${differs.join(", ")}`, true],
    ...(told?.zones ?? []).map((zone) => [zone.zone, `${store.up ? "if out" : "now"}: ${zone.on_store_failure}`]),
  ].filter(Boolean);
  showFacts($("store"), rows);
}
