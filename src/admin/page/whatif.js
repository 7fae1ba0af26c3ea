// What another rate would do: the last minutes of a zone played again, side by side.

import { send } from "./send.js";
import { $, count, make, seconds, visible } from "./text.js";

export function hideComparison() {
  $("what-if").hidden = true;
}

/** Asks the gateway, and shows the answer. */
export async function compare(zone, rate) {
  const answer = await send("POST", `api/zones/${encodeURIComponent(zone)}/what-if`, { rate });
  show(answer);
  return answer;
}

const ROWS = [
  ["passed", (it) => count(it.passed)],
  ["delayed", (it) => count(it.delayed)],
  ["rejected", (it) => count(it.rejected)],
  ["wait p50", (it) => seconds(it.wait_p50)],
  ["wait p99", (it) => seconds(it.wait_p99)],
  ["most a second at the origin", (it) => count(it.most_per_second)],
];

function show({ now, then }) {
  const table = $("what-if");
  table.hidden = false;
  table.tBodies[0].replaceChildren(...ROWS.map(([label, tell]) => {
    const row = make("tr");
    const head = make("th", "", visible(label));
    head.scope = "row";
    row.append(head, make("td", "", tell(now)), make("td", "", tell(then)));
    return row;
  }));
}
