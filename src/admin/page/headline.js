// The headline: what matters most, as the gateway says it, and what it said before.

import { RECENT, drawSoon, known, last } from "./state.js";
import { $, clock, count, make, tell, visible } from "./text.js";

let past = null;

export function showHeadline() {
  const { cause, severity, about, title, evidence, remedy, also } = last().headline;
  const card = $("answer");
  card.dataset.severity = severity;
  card.dataset.cause = cause;
  tell($("what"), title);
  tell($("why"), evidence);
  tell($("turn"), remedy);
  const list = $("also");
  list.hidden = also.length === 0;
  const said = JSON.stringify(also);
  if (list.said !== said) {
    list.said = said;
    list.replaceChildren(...also.map((other) => make("li", "", visible(other))));
  }
  // A screen reader announces another cause, not each number.
  const kind = `${cause} ${about ?? ""}`;
  if ($("spoken").dataset.kind !== kind) {
    $("spoken").dataset.kind = kind;
    $("spoken").textContent = $("what").textContent;
    if ($("past").open) askPast();
  }
}

async function askPast() {
  try {
    const answer = await fetch("api/headline", { cache: "no-store" });
    if (answer.ok) past = (await answer.json()).history;
  } catch {
    // The list stays as it was; the stream shows whether the gateway is reachable.
  }
  showPast();
}

function showPast() {
  const list = $("past").querySelector("ol");
  if (!past) return;
  list.replaceChildren(...past.map(({ since, until, count: requests, headline }) => {
    const row = make("li");
    row.dataset.severity = headline.severity;
    const time = make("time", "muted", `${clock(since)} – ${until ? clock(until) : "now"}`);
    const what = make("span");
    what.textContent = visible(headline.title) + (requests > 0 ? ` · ${count(requests)} requests` : "");
    what.title = visible(headline.evidence);
    row.append(time, what);
    return row;
  }));
  if (past.length === 0) list.replaceChildren(make("li", "muted", "No warning yet."));
}

export function startHeadline() {
  $("past").addEventListener("toggle", () => {
    if ($("past").open) askPast();
    drawSoon();
  });
  setInterval(() => {
    if ($("past").open && !document.hidden && known.samples.length) askPast();
  }, RECENT * 1000);
}
