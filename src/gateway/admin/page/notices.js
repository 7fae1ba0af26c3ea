// Notices: an error in the file, a stop, a lost connection.

import { isLost } from "./link.js";
import { needsToken } from "./login.js";
import { known, last } from "./state.js";
import { $, clock, make, placeOf, say, setState, setText, visible } from "./text.js";

/** Shows one notice per kind, with a title and lines; without a title, removes it. */
function notice(kind, title, lines = []) {
  const said = JSON.stringify([title, lines]);
  let it = [...$("notices").children].find((each) => each.dataset.about === kind);
  if (!title) {
    it?.remove();
    return;
  }
  if (!it) {
    it = make("div", "notice");
    it.dataset.about = kind;
    it.dataset.kind = kind === "stopping" ? "wait" : "bad";
    it.setAttribute("role", kind === "stopping" ? "status" : "alert");
    $("notices").append(it);
  }
  if (it.said === said) return;
  it.said = said;
  const list = make("ul");
  list.append(...lines.map((parts) => {
    const line = make("li");
    say(line, ...parts);
    return line;
  }));
  it.replaceChildren(make("b", "", title), ...(lines.length ? [list] : []));
}

export function showNotices() {
  const sample = last();
  const error = sample?.error;
  let lines = [];
  if (error) {
    const told = known.config?.error?.problems ?? [];
    // Each sample has only the first problem. The others come from a request to the API.
    const same = ["file", "line", "message"].every((name) => told[0]?.[name] === error[name]);
    const problems = same ? told : [error];
    lines = problems.slice(0, 5).map((problem) => {
      const [place, message] = [placeOf(problem), visible(problem.message)];
      return place ? [{ bold: place }, `: ${message}`] : [message];
    });
    if (problems.length > 5) lines.push([`and ${problems.length - 5} more`]);
  }
  const file = known.config?.file ?? "The file";
  notice("file", error && `${visible(file)} has an error; the previous settings stay in force`, lines);
  notice("stopping", sample?.stopping && "The gateway is stopping: it accepts no new connections, and the queues drain at their rate.");
}

export function showLink() {
  const locked = needsToken();
  const lost = isLost();
  const stopping = last()?.stopping;
  document.body.classList.toggle("gone", lost && known.samples.length > 0);
  const state = lost ? "rejecting" : !last() ? "waits" : stopping ? "waiting" : "passing";
  setState($("link"), state);
  setText($("link").firstElementChild, locked ? "needs a token" : lost ? "offline" : !last() ? "connecting" : stopping ? "stopping" : "live");
  notice("gone", lost && !locked && (last()
    ? `No data from the gateway since ${clock(last().time)}. The values below are from then. This page keeps trying to connect.`
    : "No data from the gateway. This page keeps trying to connect."));
}
