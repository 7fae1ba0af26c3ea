// What another rate would do: the last minutes of a zone played again, side by side.

import { send } from "./send.js";
import { $, code, count, make, percent, seconds, setText, visible } from "./text.js";

const ROWS = [
  ["rate of each key", (it) => visible(it.rate)],
  ["passed", (it) => count(it.passed)],
  ["delayed", (it) => count(it.delayed + it.delayed_dry_run)],
  ["rejected", (it) => `${count(it.rejected + it.rejected_dry_run)} (${percent(it.share_rejected, 1)})`],
  ["wait p50", (it) => seconds(it.wait_p50)],
  ["wait p99", (it) => seconds(it.wait_p99)],
  ["most in a second at the origin", (it) => count(it.most_in_a_second)],
];

export function hideComparison() {
  $("what-if").hidden = true;
  setText($("what-if-note"), "");
}

/** Asks the gateway, and shows the answer if the reader still wants it. */
export async function compare(zone, rate, isWanted) {
  const answer = await send("POST", `api/zones/${encodeURIComponent(zone)}/what-if`, { rate });
  if (isWanted()) show(answer);
}

function row(head, now, then) {
  const it = make("tr");
  head.scope = "row";
  it.append(head, make("td", "", now), make("td", "", then));
  return it;
}

function show({ now, then, arrivals, span_seconds: span, keys, ignores, differs }) {
  $("what-if").hidden = false;
  $("what-if").tBodies[0].replaceChildren(
    ...ROWS.map(([label, tell]) => row(make("th", "", label), tell(now), tell(then))),
    ...keys.map((key) => {
      const head = make("th", "", "rejected of ");
      head.append(code(key.key));
      return row(head, count(key.rejected_now), count(key.rejected_then));
    }),
  );
  const not = ignores.length ? ` Not replayed: ${ignores.map(visible).join("; ")}.` : "";
  setText($("what-if-note"), `${count(arrivals)} requests of the last ${seconds(Math.round(span))}, decided on again.${differs ? ` ${visible(differs)}` : ""}${not}`);
}
