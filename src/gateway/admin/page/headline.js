// The headline: what matters most, as the gateway says it, and what it said before.

import { actOnZone } from "./act.js";
import { RECENT, drawSoon, known, last } from "./state.js";
import { $, ago, clock, count, make, setText, tell, visible } from "./text.js";
import { call } from "./token.js";

let past = null;

/** Seconds for which the origins stay in the wide column after their incident. */
const STAY = 30;
let wideUntil = 0;

/** Shows the origins in the wide column while the headline is about a gate, its history open. On a phone, numbers come before plots. */
function placeOrigins(about, now) {
  const gate = about !== undefined && last().gates.has(about);
  if (gate) wideUntil = now + STAY;
  const [card, isWide] = [$("origins-card"), now < wideUntil];
  if (isWide === (card.parentElement.localName === "main")) return;
  if (isWide) {
    $("totals").after(card);
    for (const details of card.querySelectorAll(".gate details")) details.open ||= innerWidth >= 620;
  } else {
    $("file-title").parentElement.before(card);
  }
  drawSoon();
}

export function showHeadline() {
  const { cause, severity, about, title, evidence, remedy, also, since, ended, advised_rate: rate } = last().headline;
  placeOrigins(about, last().time);
  showAdvice(about, rate);
  const card = $("answer");
  card.dataset.severity = severity;
  card.dataset.cause = cause;
  tell($("what"), title);
  tell($("why"), evidence);
  tell($("turn"), remedy);
  tell($("when"), since ? `Since ${clock(since)}.` : ended ? `Ended ${ago(last().time - ended.at)}: ${ended.title}` : "");
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

/** Offers the rate that the remedy names. */
function showAdvice(zone, rate) {
  const button = $("advised");
  button.hidden = rate === undefined;
  if (rate === undefined) return;
  setText(button, `Try ${visible(rate)} …`);
  button.onclick = () => actOnZone(zone, "rate", rate);
}

async function askPast() {
  try {
    const answer = await call("api/headline");
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
