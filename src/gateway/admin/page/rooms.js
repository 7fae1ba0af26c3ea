// The panel of an origin's waiting room: the visitors who wait, who are inside, and the override.

import { actOnRoom } from "./act.js";
import { overrideLine, showRoomOverride } from "./overrides.js";
import { Plot, seen } from "./plot.js";
import { drawSoon } from "./state.js";
import { axisSeconds, clock, clone, count, make, say, seconds, setText, stats, visible, whole } from "./text.js";

const callsOf = (n) => `${count(n)}/s`;

function plotsOf(name) {
  const of = (pick) => (sample) => {
    const room = sample.origin.get(name)?.room;
    return room ? pick(room) : null;
  };
  return [
    new Plot({
      title: "Waiting",
      format: whole,
      axisFormat: count,
      integers: true,
      series: [{ label: "visitors", ink: "delayed", kind: "area", fold: "most", of: of((room) => room.waiting) }],
    }),
    new Plot({
      title: "Inside",
      format: whole,
      axisFormat: count,
      integers: true,
      series: [
        { label: "visitors", ink: "passed", kind: "area", fold: "most", of: of((room) => room.inside) },
        { label: "sessions", ink: "limit", kind: "limit", rare: true, fold: "last", of: of((room) => room.sessions.now) },
      ],
    }),
    new Plot({
      title: "Wait of a new visitor",
      format: seconds,
      axisFormat: axisSeconds,
      series: [{ label: "predicted", ink: "delayed", kind: "line", fold: "most", of: of((room) => room.wait) }],
    }),
  ];
}

/** What the room does, in a word, and its color. */
function stateOf(room) {
  if (room.override?.pause) return ["paused", "waiting"];
  if (!room.open) return ["not open", "waiting"];
  if (room.stuck >= 5) return ["calls nobody", "rejecting"];
  return room.waiting > 0 ? ["calling", "waiting"] : ["open", "passing"];
}

export class RoomPanel {
  constructor(name) {
    this.name = name;
    this.root = clone("room");
    this.root.card = this;
    const part = (what) => this.root.querySelector(what);
    [this.pill, this.settings, this.word, this.history] = [".pill", ".settings", ".word", "details"].map(part);
    this.stats = stats(part(".stats"), ["waiting", "called", "inside", "wait"]);
    this.override = overrideLine(() => actOnRoom(name, "undo"));
    this.settings.before(this.override);
    this.plots = plotsOf(name);
    part(".plots").append(...this.plots.map((plot) => plot.root));
    part(".act").addEventListener("click", () => actOnRoom(name));
    this.history.addEventListener("toggle", drawSoon);
    seen.observe(this.root);
  }

  show(room) {
    const [words, color] = stateOf(room);
    this.pill.dataset.state = color;
    setText(this.pill.firstElementChild, words);
    const sessions = room.sessions.now;
    const told = [whole(room.waiting), whole(room.called), `${whole(room.inside)}${sessions ? ` of ${count(sessions)}` : ""}`, seconds(room.wait)];
    told.forEach((value, i) => setText(this.stats[i], value));
    showRoomOverride(this.override, room.override, room);
    this.word.hidden = !room.word;
    if (room.word) say(this.word, { bold: "They read" }, `: ${visible(room.word.word)} (until ${clock(Date.parse(room.word.until) / 1000)})`);
    const ended = room.came_lately + room.lost_lately;
    const chips = [
      Number.isFinite(room.pace) && ["pace ", { bold: callsOf(room.pace) }],
      room.admit.now && ["admit ", { bold: room.admit.now }],
      room.front_wait !== null && ["the last one waited ", { bold: seconds(room.front_wait) }],
      ended > 0 && ["in 5 min ", { bold: whole(room.came_lately) }, " came, ", { bold: whole(room.lost_lately) }, " lost their call"],
      room.opens && [room.open ? "opened " : "opens ", { bold: new Date(room.opens).toLocaleString() }],
    ].filter(Boolean);
    while (this.settings.children.length > chips.length) this.settings.lastChild.remove();
    chips.forEach((parts, i) => say(this.settings.children[i] ?? this.settings.appendChild(make("li")), ...parts));
  }

  draw() {
    if (this.onScreen && this.history.open) this.plots.forEach((plot) => plot.draw());
  }
}
