// The file: since when it is in force, and what changed.

import { linesOf, marks } from "./marks.js";
import { known, last } from "./state.js";
import { $, ago, clock, make, setText, showFacts, visible } from "./text.js";

export function showFile() {
  const { config } = known;
  if (!config) return;
  const now = last()?.time ?? 0;
  const loaded = Date.parse(config.loaded_at) / 1000;
  const rows = [
    ["name", config.file],
    ["in force since", `${clock(loaded)}, ${ago(now - loaded)}`],
    ["reloads", String(last()?.reload ?? 0)],
    last()?.error ? ["state", "has an error; previous settings in force", true] : ["state", "in force"],
  ];
  showFacts($("file"), rows);
  setText($("settings").querySelector("pre"), config.settings);
  setText($("version"), config.version);
  setText($("gateway"), visible(config.gateway ?? ""));
  showChanges();
}

/** The changes, the newest first; those older than the plots too. */
function showChanges() {
  const list = $("changes").querySelector("ol");
  const all = marks().toReversed();
  const said = JSON.stringify(all);
  if (list.said === said) return;
  list.said = said;
  setText($("changes").querySelector("summary"), all.length ? `Changes (${all.length})` : "Changes");
  list.replaceChildren(...all.map((mark) => {
    const [head, ...what] = linesOf(mark);
    const row = make("li");
    row.append(make("span", "muted", head), ...what.map((line) => make("code", "", line)));
    return row;
  }));
  if (all.length === 0) list.replaceChildren(make("li", "muted", "None since the start."));
}
