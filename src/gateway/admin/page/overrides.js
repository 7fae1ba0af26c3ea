// Overrides of a zone, a key, a gate or a waiting room, and their end.

import { last } from "./state.js";
import { clock, count, instead, make, say, seconds, visible } from "./text.js";

/** What an override changes, such as `rate 20r/s instead of 10r/s`. */
function whatDiffers(override, fileRate) {
  return [
    override.pause && ["paused: no request leaves"],
    override.rate && ["rate ", { bold: override.rate }, instead(fileRate)],
    override.dry_run === true && ["dry run: nothing is delayed or rejected"],
    override.dry_run === false && ["dry run off"],
  ].filter(Boolean).flatMap((parts, i) => (i ? ["; ", ...parts] : parts));
}

/** In a few words, for a spot with little room. */
export function inShort(override) {
  const what = override.pause ? "paused" : override.rate ?? (override.dry_run ? "dry run" : "dry run off");
  return `not as in the file: ${visible(what)} until ${clock(Date.parse(override.until) / 1000)}`;
}

/** A line that shows an override, with a button that undoes it. */
export function overrideLine(undo) {
  const line = make("p", "override");
  const button = make("button", "small", "Undo …");
  button.type = "button";
  button.addEventListener("click", undo);
  line.append(make("span"), button);
  line.hidden = true;
  return line;
}

/** What an override of a waiting room changes, such as `sessions 100 instead of 500`. */
function whatDiffersInRoom(override, { sessions, admit }) {
  const bound = (n) => (n ? String(n) : "not bounded");
  return [
    override.pause && ["paused: nobody is called"],
    override.sessions !== null && ["sessions ", { bold: bound(override.sessions) }, ` instead of ${bound(sessions.file)}`],
    override.admit !== null && ["admit ", { bold: override.admit }, ` instead of ${visible(admit.file ?? "none")}`],
  ].filter(Boolean).flatMap((parts, i) => (i ? ["; ", ...parts] : parts));
}

/** What an override of a gate changes, such as `rate 20r/s instead of 10r/s`. */
function whatDiffersAtGate(override, settings) {
  return [
    override.pause && ["paused: no request leaves"],
    override.rate !== null && ["rate ", { bold: override.rate }, instead(settings?.rate.file)],
    override.max_in_flight !== null && ["max_in_flight ", { bold: count(override.max_in_flight) }, instead(settings?.max_in_flight.file)],
  ].filter(Boolean).flatMap((parts, i) => (i ? ["; ", ...parts] : parts));
}

export function showGateOverride(line, override, settings) {
  showLine(line, override, () => whatDiffersAtGate(override, settings));
}

export function showRoomOverride(line, override, room) {
  showLine(line, override, () => whatDiffersInRoom(override, room));
}

export function showOverride(line, override, fileRate) {
  showLine(line, override, () => whatDiffers(override, fileRate));
}

function showLine(line, override, what) {
  line.hidden = !override;
  if (!override) return;
  const until = Date.parse(override.until) / 1000;
  const left = Math.max(0, until - (last()?.time ?? until));
  const end = `, until ${clock(until)} (${left >= 90 ? `${Math.round(left / 60)} min` : seconds(Math.round(left))} left), by `;
  const owner = override.owner ? `, renewed by ${visible(override.owner)}` : "";
  say(line.firstElementChild, { bold: "Not as in the file" }, ": ", ...what(), end, { code: override.by }, `${owner}.`);
}
