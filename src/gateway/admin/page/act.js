// The dialog that acts on a zone, a key or the gateway: it says what will happen, and asks once.

import { actionsOf } from "./actions.js";
import { send } from "./send.js";
import { known, last } from "./state.js";
import { $, make, setText, visible } from "./text.js";
import { keepToken, token } from "./token.js";
import { compare, hideComparison } from "./whatif.js";

let target = null;
let actions = [];
let done = () => {};
let shownFor = null; // the action whose fields are shown

const chosen = () => actions.find(({ id }) => id === $("act-what").querySelector("input:checked")?.value) ?? actions[0];
/** What the experiment is asked for, as the API takes it. */
function findFields() {
  return Object.fromEntries([...$("act-find").querySelectorAll("input")].map(({ name, value }) => [name, value.trim()]));
}

const fields = () => ({ find: findFields(), rate: $("act-rate").value.trim(), text: $("act-text").value.trim(), span: $("act-for").value, words: $("act-for").selectedOptions[0].textContent });

function open(title, of, first, rate = "") {
  target = of;
  actions = actionsOf(of);
  setText($("act-title"), title);
  $("act-what").replaceChildren(make("legend", "unseen", "Action"), ...actions.map(({ id, label }) => {
    const row = make("label");
    const input = make("input");
    Object.assign(input, { type: "radio", name: "act", value: id, checked: id === (first ?? actions[0].id) });
    row.append(input, make("span", "", label));
    return row;
  }));
  $("act-what").hidden = actions.length < 2;
  $("act-rate").value = rate;
  complain("");
  $("act-token-line").hidden = true;
  $("act-token").value = token();
  change();
  $("act-dialog").showModal();
}

/** Shows what the chosen action does. */
function change() {
  const action = chosen();
  const { field } = action;
  $("act-text-line").hidden = !field;
  if (field && shownFor !== action) {
    setText($("act-text-label"), field.label);
    $("act-text").value = field.value;
  }
  shownFor = action;
  $("act-find").hidden = !action.isFind;
  $("act-rate-line").hidden = !action.hasRate;
  $("act-for-line").hidden = !action.isTimed;
  $("act-compare").hidden = !action.tries || target.key !== undefined;
  hideComparison();
  setText($("act-will"), action.will(fields()));
  setText($("act-do"), action.verb);
  $("act-do").classList.toggle("danger", Boolean(action.isHarsh));
}

function complain(text, needsToken = false) {
  $("act-error").hidden = !text;
  setText($("act-error"), text);
  if (needsToken) {
    $("act-token-line").hidden = false;
    $("act-token").focus();
  }
}

/** Runs what the reader asked for; an error is shown in the dialog. Whether it went well. */
async function attempt(button, run) {
  if (!$("act-token-line").hidden) keepToken($("act-token").value);
  button.disabled = true;
  complain("");
  try {
    await run();
    return true;
  } catch (error) {
    complain(error.needsToken && !token() ? `${error.message}. Enter the token below.` : `${error.message}.`.replace(/\.\.$/, "."), error.needsToken);
    return false;
  } finally {
    button.disabled = false;
  }
}

/** Whether all fields are filled that the action needs. */
function isFilled(action) {
  if (action.hasRate && !fields().rate) {
    complain("Enter a rate, such as 20r/s.");
    $("act-rate").focus();
    return false;
  }
  if (action.field && !action.field.isOptional && !fields().text) {
    complain(`${action.field.label} is empty.`);
    $("act-text").focus();
    return false;
  }
  return true;
}

async function act() {
  const action = chosen();
  if (!isFilled(action)) return;
  const { method, path, body } = action.request(fields());
  const run = async () => {
    const answer = await send(method, path, body);
    action.after?.(answer);
  };
  if (!(await attempt($("act-do"), run))) return;
  $("act-dialog").close();
  setText($("acted"), `${action.verb}: done.`);
  done();
}

/** Opens the dialog for a zone; `first` is the chosen action, and `rate` fills its field. */
export function actOnZone(zone, first, rate) {
  const settings = known.settings.get(zone);
  const { override } = last()?.zone.get(zone) ?? {};
  open(`Zone ${visible(zone)}`, { zone, rate: settings?.rate, override }, first, rate);
}

/** Opens the dialog for a route, or for all of them without a name. */
export function actOnRoutes(name, maintenance) {
  if (name === undefined) open("All routes", { routes: true, maintenance });
  else open(`Route ${visible(name)}`, { route: name, maintenance });
}

/** Opens the dialog for the gate of an origin. */
export function actOnGate(origin, first) {
  const { rate, max_in_flight } = known.origins.find(({ name }) => name === origin)?.gate ?? {};
  const { override } = last()?.gates.get(origin) ?? {};
  const isTried = known.finds.get(origin)?.state === "running";
  open(`Gate of ${visible(origin)}`, { gate: origin, rate: rate?.file, permits: max_in_flight?.file, override, isTried }, first, override?.rate ?? rate?.file ?? "");
}

/** Opens the dialog for the waiting room of an origin. */
export function actOnRoom(origin, first) {
  const { override, word } = last()?.origin.get(origin)?.room ?? {};
  open(`Waiting room of ${visible(origin)}`, { room: origin, override, word }, first);
}

export function actOnKey(zone, { key, override }) {
  // The gateway cuts the names of long keys, so that the whole one is not known here.
  if (key.endsWith("…")) {
    open(`Zone ${visible(zone)} (the key's name is too long to act on it here)`, { zone, rate: known.settings.get(zone)?.rate, override: last()?.zone.get(zone)?.override });
    return;
  }
  const rate = known.settings.get(zone)?.rate;
  const some = last()?.zone.get(zone)?.overridden_keys > 0;
  open(`Key ${key === "" ? "(no key)" : visible(key)} in ${visible(zone)}`, { zone, key, rate, override: override ?? (some || undefined) });
}

export function startAct(afterwards) {
  done = afterwards;
  $("act-form").addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
  $("act-cancel").addEventListener("click", () => $("act-dialog").close());
  $("act-form").addEventListener("input", (event) => {
    if (event.target !== $("act-token")) change();
  });
  $("act-compare").addEventListener("click", () => {
    const action = chosen();
    if (!isFilled(action)) return;
    const [of, asked] = [target, JSON.stringify(fields())];
    const isWanted = () => target === of && JSON.stringify(fields()) === asked;
    attempt($("act-compare"), () => compare(of.zone, action.tries(fields()), isWanted));
  });
  $("reload").addEventListener("click", () => open("The gateway", { gateway: true }));
  $("token").value = token();
  $("token-form").addEventListener("submit", (event) => event.preventDefault());
  $("token").addEventListener("change", ({ target: field }) => keepToken(field.value));
}
