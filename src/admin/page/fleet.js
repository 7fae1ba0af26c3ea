// This gateway and its peers in one picture: sums, and what each of them has of them.

import { drawSoon, known } from "./state.js";
import { $, count, make, pace, percent, say, seconds, setState, setText, tell, visible } from "./text.js";
import { call } from "./token.js";

const ASK_AFTER = 1000; // ms from an answer to the next request
const TROUBLES = { silent: "does not answer", refuses: "cannot be read", strange: "is no drip gateway" };
const STATES = { bad: "rejecting", warn: "waiting", fine: "passing" };

let picture = null;
let asking = false;

/** Asks for the picture while the page is looked at. The gateway asks its peers only then. */
async function askFleet() {
  if (asking || document.hidden || !known.config?.peers) return;
  asking = true;
  try {
    const answer = await call("api/fleet");
    if (answer.ok) picture = await answer.json();
  } catch {
    // The stream shows whether the gateway is reachable.
  }
  asking = false;
  drawSoon();
}

export function startFleet() {
  setInterval(askFleet, ASK_AFTER);
}

function newRow() {
  const row = make("li");
  row.name = make("b");
  row.told = make("span");
  row.more = make("details");
  row.parts = make("ul");
  row.more.append(make("summary", "", "Each gateway"), row.parts);
  row.append(row.name, " ", row.told, row.more);
  return row;
}

/** Shows rows of a name, what is told of it, whether it is bad, and what each gateway has of it. */
function showRows(list, rows) {
  while (list.children.length > rows.length) list.lastChild.remove();
  rows.forEach(([name, told, isBad, parts], i) => {
    if (!list.children[i]) list.append(newRow());
    const row = list.children[i];
    setText(row.name, visible(name));
    say(row.told, told);
    row.told.classList.toggle("bad", Boolean(isBad));
    row.more.hidden = parts.length === 0;
    while (row.parts.children.length > parts.length) row.parts.lastChild.remove();
    parts.forEach((part, n) => {
      if (!row.parts.children[n]) row.parts.append(make("li"));
      setText(row.parts.children[n], part);
    });
  });
  list.previousElementSibling.hidden = rows.length === 0;
}

const listed = (parts) => parts.filter(Boolean).map(visible).join(" · ");
const some = (n, text) => (n > 0 ? `${count(n)} ${text}` : "");
const time = (utc) => utc?.slice(11, 19) ?? "";

function gateway({ name, address, state, since, reason, version, stopping, answers, in_flight, depth, rejected, clock, severity, title }) {
  const where = address && address !== name ? address : "";
  if (TROUBLES[state]) return [name, listed([where, `${TROUBLES[state]} since ${time(since)} UTC: ${reason}`]), true, []];
  if (state !== "answers") return [name, listed([where, state === "same" ? reason : "not read yet"]), false, []];
  const apart = clock !== undefined && Math.abs(clock) >= 0.5 ? `clock ${clock > 0 ? "+" : ""}${clock.toFixed(1)} s` : "";
  const told = [where, version, stopping && "stopping", `${count(answers)} answers/s`, some(in_flight, "in flight"), some(depth, "waiting"), some(rejected, "rejected/s"), apart, title];
  return [name, listed(told), severity === "bad", []];
}

const zoneNow = ({ out, rejected, depth, oldest_wait }) => [pace(out), some(rejected, "rejected/s"), some(depth, `waiting, oldest ${seconds(oldest_wait)}`)];

function zone({ name, store, rates, parts, ...sums }) {
  const each = parts.map(({ gateway, ...part }) => listed([gateway, ...zoneNow(part)]));
  return [name, listed([store === "redis" ? "in Redis" : "at each gateway", rates.join(" or "), ...zoneNow(sums)]), sums.rejected > 0, each];
}

const gateNow = ({ sent, depth, in_flight, rejected }) => [sent === undefined ? "" : `${pace(sent)} sent`, some(depth, "waiting"), some(in_flight, "in flight"), some(rejected, "rejected/s")];

function gate({ origin, shared, rates, gateways, parts, ...sums }) {
  const each = parts.map(({ gateway, part, alone, ...now }) => listed([gateway, part === undefined ? "" : `part ${percent(part, 1)}`, alone && "goes on alone", ...gateNow(now)]));
  const sharing = shared ? `shared by ${gateways ?? "?"}` : "at each gateway";
  return [origin, listed([rates.join(" or "), sharing, ...gateNow(sums)]), sums.rejected > 0 || parts.some(({ alone }) => alone), each];
}

function places({ origin, of, withheld, free, held, in_use, elsewhere, parts }) {
  const each = parts.map((part) => `${visible(part.gateway)} · ${count(part.in_use)} in use of ${count(part.held)} held`);
  // With these the parts add up to what is held and withheld.
  if (elsewhere > 0) each.push(`gateways that are not read · ${count(elsewhere)} held`);
  if (withheld > 0) each.push(`gateways that vanished · ${count(withheld)} withheld`);
  return [origin, listed([`${count(in_use)} in use of ${count(of)}`, `${count(held + elsewhere)} held`, `${count(free)} free`, some(withheld, "withheld")]), withheld > 0, each];
}

function key({ zone, gate, key, plan, masked, depth, rejections, oldest_wait, parts }) {
  const each = parts.map((part) => listed([part.gateway, some(part.rejections, "rejected"), some(part.depth, "waiting")]));
  const at = parts.length === 1 ? `at ${parts[0].gateway}` : `at ${parts.length} gateways`;
  const told = [zone, gate && `at the gate of ${gate}`, plan && `plan ${plan}`, masked && "masked: a name of this gateway alone", some(rejections, "rejected in the last minute"), some(depth, `waiting, oldest ${seconds(oldest_wait)}`), at];
  return [key, listed(told), false, parts.length > 1 ? each : []];
}

export function showFleet() {
  const isThere = Boolean(known.config?.peers && picture);
  $("fleet-section").hidden = !isThere;
  if (!isThere) return;
  const { headline, gateways } = picture;
  const answering = gateways.filter(({ state }) => state === "answers");
  setText($("fleet-count"), `${answering.length} of ${gateways.filter(({ state }) => state !== "same").length} answer`);
  setState($("fleet-state"), STATES[headline.severity] ?? "idle");
  tell($("fleet-state").firstElementChild, headline.title);
  tell($("fleet-why"), headline.evidence);
  tell($("fleet-turn"), headline.remedy);
  $("fleet-also").hidden = headline.also.length === 0;
  setText($("fleet-also"), `Also: ${headline.also.map(visible).join("; ")}`);
  showRows($("fleet-gateways"), gateways.map(gateway));
  showRows($("fleet-zones"), picture.zones.map(zone));
  showRows($("fleet-gates"), picture.gates.map(gate));
  showRows($("fleet-places"), picture.places.map(places));
  showRows($("fleet-keys"), picture.keys.map(key));
}
