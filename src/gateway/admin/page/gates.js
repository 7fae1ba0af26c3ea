// The gates of origins: the limits of each, its waiters, and the limit that they wait for.

import { known, last, recent, sum } from "./state.js";
import { count, pace } from "./text.js";

const grow = (all, more) => {
  for (const [name, n] of Object.entries(more)) all.set(name, (all.get(name) ?? 0) + n);
};

/** The settings of an origin's gate, from /api/origins. */
export const gateSettings = (name) => known.origins.find((origin) => origin.name === name)?.gate ?? null;

/** What this gateway has of the permits of an origin that several share, from /api/origins; null if they share none. */
export const sharedPermits = (name) => known.origins.find((origin) => origin.name === name)?.permits ?? null;

/** The gate of an origin now, and over the last seconds; null without one. */
export function gateNow(name) {
  const gate = last()?.gates.get(name);
  if (!gate) return null;
  const [reasons, left] = [new Map(), []];
  let counted = 0;
  for (const sample of recent()) {
    const then = sample.gates.get(name);
    if (!then) continue;
    counted++;
    grow(reasons, then.rejected);
    if (sample.left.has(name)) left.push(sample.left.get(name));
  }
  const sent = left.length ? sum(left) / left.length : 0;
  const flowing = { sent, rejected: sum([...reasons.values()]) / counted };
  for (const [reason, n] of reasons) reasons.set(reason, n / counted);
  return { ...gate, name, flowing, reasons };
}

const fileRate = (gate) => gateSettings(gate.name)?.rate.file ?? pace(gate.rate.file);

/** The rate now, and that of the file if it is another; null without one. */
export function rateOf(gate) {
  if (gate.rate.now === null) return null;
  if (gate.override?.rate) {
    const whole = { bold: gate.override.rate };
    return gate.backing_off && !gate.backing_off.shadow ? [{ bold: pace(gate.rate.now) }, " of ", whole] : [whole];
  }
  if (gate.backing_off?.shadow) return [{ bold: fileRate(gate) }];
  const file = { bold: fileRate(gate) };
  return gate.rate.file !== null && gate.rate.now < gate.rate.file ? [{ bold: pace(gate.rate.now) }, " of ", file] : [file];
}

/** This gateway's part of a rate that several share. */
export const partOf = ({ alone, part, gateways }) => [
  alone ? "alone with " : "part ",
  { bold: `${Math.round(100 * part)} %` },
  gateways ? ` of ${count(gateways)} gateways` : "",
];

/** What a gateway uses and holds of permits that several share. */
export const permitsHere = ({ alone, reason, held, in_use, of, gateways }) =>
  alone ? ["the lease of the permits has ended: ", { bold: reason ?? "Redis does not answer" }] : ["uses ", { bold: count(in_use) }, ` of ${count(held)} held, ${count(of)} of ${count(gateways)} gateways`];

/** The permits now, and those of the file if these are others; null without a limit. */
export function permitsOf(gate) {
  const file = gate.max_in_flight.file;
  const now = gate.backing_off?.shadow ? file : gate.max_in_flight.now;
  if (now === null) return null;
  return file !== null && now < file ? [{ bold: count(now) }, " of ", { bold: count(file) }] : [{ bold: count(now) }];
}

const BACKS_OFF = {
  trouble: "the origin is in trouble",
  slow: "the origin is slow",
  retry_after: "the origin asked for a pause",
};

/** Why a gate lets less through than the file says, as a clause. */
export function whyLess({ reason, text }) {
  return [BACKS_OFF[reason] ?? reason, text ? ` (${text})` : ""].join("");
}
