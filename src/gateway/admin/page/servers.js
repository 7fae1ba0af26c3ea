// The servers of an origin: whether each is asked, how it answers, and what failed last.

import { known, total } from "./state.js";
import { clock, code, count, listOf, make, seconds, setState, setText, visible, whole } from "./text.js";

const MANY = 0.5; // share of failed requests from which a server does not work
const SOME = 0.01;

const at = (utc) => clock(Date.parse(utc) / 1000);
const since = (now, before, pick) => Math.max(0, pick(now) - (before ? pick(before) : pick(now)));

/** What failed or got 5xx in the last seconds, and its share; the share is null without requests. */
function trouble(origin, server) {
  const before = known.before[0]?.origins.find((it) => it.name === origin.name)?.servers.find((it) => it.url === server.url);
  const errors = since(server, before, (it) => it.failed);
  const bad = errors + since(server, before, (it) => it.codes?.["5xx"] ?? 0);
  const all = errors + since(server, before, (it) => it.answered);
  return { errors, bad, share: all > 0 ? bad / all : null };
}

/**
 * The state of a server in a word, and its colour. Green is only what has just answered well: what is
 * not known of a server alone is known of all servers of the origin.
 */
function stateOf(origin, server, ofOrigin) {
  if (server.state === "out") return ["out", "rejecting"];
  const { errors, bad, share } = trouble(origin, server);
  const others = origin.servers.some((it) => it.state === "in_use");
  if (server.state === "failing") return ["failing", others ? "waiting" : "rejecting"];
  if (share >= MANY) return [errors >= bad / 2 ? "does not answer" : "answers 5xx", "rejecting"];
  if (share >= SOME) return ["some fail", "waiting"];
  if (share === null && ofOrigin[1] === "rejecting") return ofOrigin;
  return ["in use", share === null && !server.last_check?.healthy ? "idle" : "passing"];
}

function linesOf(server) {
  const { out, last_failure: failure, last_check: check, latency } = server;
  const answers = total(server.codes) > 0 ? listOf(server.codes) : `${count(server.answered)} answered`;
  const failed = total(server.errors) > 0 ? `no answer: ${listOf(server.errors)}` : `${count(server.failed)} failed`;
  const quick = latency?.p50 === null || latency?.p50 === undefined ? "" : `, p50 ${seconds(latency.p50)}, p99 ${seconds(latency.p99)}`;
  return [
    out && ["bad", `Out since ${at(out.since)} by ${visible(out.by)}; used again ${out.until ? `at ${at(out.until)}` : "when enough checks succeed"}`],
    ["muted", `${whole(server.in_flight)} in flight; ${answers}; ${failed}${quick}`],
    failure && ["", `Last failure ${at(failure.at)}: ${visible(failure.text)}`],
    check && [check.healthy ? "muted" : "bad", `Last check ${at(check.at)}: ${check.healthy ? "healthy" : "fails"}${check.text ? `, ${visible(check.text)}` : ""}`],
  ].filter(Boolean);
}

/** `ofOrigin` is the state of all servers together. */
export function showServers(list, origin, ofOrigin) {
  while (list.children.length > origin.servers.length) list.lastChild.remove();
  origin.servers.forEach((server, i) => {
    let row = list.children[i];
    if (!row) {
      row = make("li");
      const pill = make("span", "pill");
      pill.append(make("span"));
      row.append(code(""), pill);
      list.append(row);
    }
    const [name, pill] = row.children;
    const [word, tone] = stateOf(origin, server, ofOrigin);
    setText(name, visible(server.url));
    setState(pill, tone);
    setText(pill.firstElementChild, word);
    const lines = linesOf(server);
    while (row.children.length > 2 + lines.length) row.lastChild.remove();
    lines.forEach(([kind, text], n) => {
      const line = row.children[2 + n] ?? row.appendChild(make("small"));
      line.className = kind;
      setText(line, text);
    });
  });
}
