// What differs from the file for a zone or a key, and until when.

import { last } from "./state.js";
import { clock, make, say, seconds, visible } from "./text.js";

/** What an override changes, such as `rate 20r/s instead of 10r/s`. */
function whatDiffers(override, fileRate) {
  return [
    override.pause && ["paused: no request leaves"],
    override.rate && ["rate ", { bold: override.rate }, ...(fileRate ? [` instead of ${visible(fileRate)}`] : [])],
    override.dry_run === true && ["dry run: nothing is delayed or rejected"],
    override.dry_run === false && ["dry run off"],
  ].filter(Boolean).flatMap((parts, i) => (i ? ["; ", ...parts] : parts));
}

/** In a few words, for a place with little room. */
export function inShort(override) {
  const what = override.pause ? "paused" : override.rate ?? (override.dry_run ? "dry run" : "dry run off");
  return `not as in the file: ${visible(what)} until ${clock(Date.parse(override.until) / 1000)}`;
}

/** A line that tells of an override, with a button that undoes it. */
export function overrideLine(undo) {
  const line = make("p", "override");
  const button = make("button", "small", "Undo …");
  button.type = "button";
  button.addEventListener("click", undo);
  line.append(make("span"), button);
  line.hidden = true;
  return line;
}

export function showOverride(line, override, fileRate) {
  line.hidden = !override;
  if (!override) return;
  const until = Date.parse(override.until) / 1000;
  const left = Math.max(0, until - (last()?.time ?? until));
  const end = `, until ${clock(until)} (${left >= 90 ? `${Math.round(left / 60)} min` : seconds(Math.round(left))} left), by `;
  say(line.firstElementChild, { bold: "Not as in the file" }, ": ", ...whatDiffers(override, fileRate), end, { code: override.by }, ".");
}
