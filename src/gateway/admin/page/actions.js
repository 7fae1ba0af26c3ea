// Acts on a zone, a key or the gateway, in words and as a request.

import { ownFind, take } from "./ownfinds.js";
import { instead, visible } from "./text.js";

const BACK = "Afterwards, or after a restart, the file holds again.";

/** Overrides of a zone or a key: `who` is the zone or key. */
function overrides(path, who, rate, override) {
  const put = (body) => (fields) => ({ method: "PUT", path, body: { ...body(fields), for: fields.span } });
  const all = [
    {
      id: "rate",
      label: "Temporary rate",
      verb: "Set the rate",
      hasRate: true,
      tries: ({ rate }) => ({ rate }),
      isTimed: true,
      will: ({ rate: to, words }) => `${who.each} gets ${to || "the rate above"}${instead(rate)} for ${words}. ${BACK}`,
      request: put((fields) => ({ rate: fields.rate })),
    },
    {
      id: "pause",
      label: "Pause",
      verb: "Pause",
      isHarsh: true,
      isTimed: true,
      will: ({ words }) => `No request of ${who.all} leaves for ${words}: requests wait, and are rejected where a queue is full. ${BACK}`,
      request: put(() => ({ pause: true })),
    },
    {
      id: "dry",
      label: "Dry run on",
      verb: "Start the dry run",
      isTimed: true,
      will: ({ words }) => `For ${words} no request of ${who.all} is delayed or rejected. Requests that would be are counted. ${BACK}`,
      request: put(() => ({ dry_run: true })),
    },
    {
      id: "wet",
      label: "Dry run off",
      verb: "End the dry run",
      isTimed: true,
      will: ({ words }) => `For ${words} requests of ${who.all} are limited, even where a route says dry_run. ${BACK}`,
      request: put(() => ({ dry_run: false })),
    },
  ];
  const undo = {
    id: "undo",
    label: override?.pause ? "Resume: follow the file again" : "Undo: follow the file again",
    verb: override?.pause ? "Resume" : "Undo",
    will: () => `The override of ${who.all} ends now.`,
    request: () => ({ method: "DELETE", path }),
  };
  return override ? [undo, ...all] : all;
}

function forgetting(path) {
  return [
    {
      id: "forget",
      label: "Forget the key",
      verb: "Forget",
      will: () => "The charge of the key is forgotten. Waiting requests keep their order and pace.",
      request: () => ({ method: "DELETE", path: `${path}?drop=false` }),
    },
    {
      id: "drop",
      label: "Forget the key and reject its waiting requests",
      verb: "Forget and reject",
      isHarsh: true,
      will: () => "The charge of the key is forgotten, and its waiting requests get 503.",
      request: () => ({ method: "DELETE", path: `${path}?drop=true` }),
    },
  ];
}

/** Maintenance of a route or of all: `who` is which. */
function maintenances(path, who, maintenance) {
  const set = {
    id: "maintenance",
    label: "Maintenance",
    verb: "Start maintenance",
    isHarsh: true,
    isTimed: true,
    will: ({ words }) => `New requests of ${who} get 503 for ${words}, with the route's page if it has one. Waiting and running requests go on. ${BACK}`,
    request: ({ span }) => ({ method: "PUT", path, body: { for: span } }),
  };
  const undo = {
    id: "undo",
    label: "End maintenance",
    verb: "End maintenance",
    will: () => `Requests of ${who} are forwarded again.`,
    request: () => ({ method: "DELETE", path }),
  };
  return maintenance ? [undo, set] : [set];
}

/** Starts or stops the experiment at the gate of an origin. */
function findActs(origin, isTried) {
  const who = visible(origin);
  const start = {
    id: "find",
    label: "Find what it can take",
    verb: "Start",
    isFind: true,
    will: ({ find }) => `While requests wait there, the gate of ${who} raises its limit step by step as long as ${find.slo ? visible(find.slo) : "the objective"} holds, and lowers it at once when the objective breaks. The experiment ends 15 seconds after this page is closed. ${BACK}`,
    request: ({ find }) => ({ method: "POST", path: "api/find", body: { origin, ...find } }),
    after: ownFind,
  };
  const stop = {
    id: "stop",
    label: "Stop the experiment",
    verb: "Stop",
    will: () => `The experiment ends, and the file holds again at the gate of ${who}.`,
    request: () => ({ method: "DELETE", path: `api/find/${encodeURIComponent(origin)}` }),
    after: take,
  };
  return [isTried ? stop : start];
}

/** Acts at the gate of an origin: `who` is the origin. */
function gateActs(path, who, rate, permits, override) {
  const put = (body) => (fields) => ({ method: "PUT", path, body: { ...body(fields), for: fields.span } });
  const acts = [
    {
      id: "rate",
      label: "Temporary rate",
      verb: "Set the rate",
      hasRate: true,
      isTimed: true,
      will: ({ rate: to, words }) => `The gate of ${who} lets ${to || "the rate above"} through${instead(rate)} for ${words}. ${BACK}`,
      request: put((fields) => ({ rate: fields.rate })),
    },
    {
      id: "permits",
      label: "Temporary max_in_flight",
      verb: "Set the permits",
      field: { label: "Requests at once", value: String(permits ?? "") },
      isTimed: true,
      will: ({ text, words }) => `At most ${text || "so many"} requests are at ${who} at once${instead(permits)} for ${words}. ${BACK}`,
      request: put(({ text }) => ({ max_in_flight: Number(text) })),
    },
    {
      id: "pause",
      label: "Pause",
      verb: "Pause",
      isHarsh: true,
      isTimed: true,
      will: ({ words }) => `No request leaves to ${who} for ${words}: requests wait at its gate, and are rejected where the queue is full or the wait too long. ${BACK}`,
      request: put(() => ({ pause: true })),
    },
  ];
  const undo = {
    id: "undo",
    label: override?.pause ? "Resume: follow the file again" : "Undo: follow the file again",
    verb: override?.pause ? "Resume" : "Undo",
    will: () => `The override of the gate of ${who} ends now.`,
    request: () => ({ method: "DELETE", path }),
  };
  return override ? [undo, ...acts] : acts;
}

/** Acts in the waiting room of an origin: `who` is the origin. */
function roomActs(path, who, { override, word }) {
  const put = (body) => (fields) => ({ method: "PUT", path: `${path}/override`, body: { ...body(fields), for: fields.span } });
  const acts = [
    {
      id: "pause",
      label: "Pause calling",
      verb: "Pause",
      isHarsh: true,
      isTimed: true,
      will: ({ words }) => `Nobody is called for ${words}. Visitors inside stay, called visitors may come. ${BACK}`,
      request: put(() => ({ pause: true })),
    },
    {
      id: "admit",
      label: "Another pace",
      verb: "Set the pace",
      hasRate: true,
      isTimed: true,
      will: ({ rate, words }) => `Visitors are let in at ${rate || "the rate above"} for ${words}. ${BACK}`,
      request: put(({ rate }) => ({ admit: rate })),
    },
    {
      id: "sessions",
      label: "Other sessions",
      verb: "Set the sessions",
      field: { label: "Sessions", value: "" },
      isTimed: true,
      will: ({ text, words }) => `At most ${text || "so many"} visitors are inside for ${words}; 0 does not bound them. Nobody is sent away. ${BACK}`,
      request: put(({ text }) => ({ sessions: Number(text) })),
    },
    {
      id: "call",
      label: "Call some now",
      verb: "Call",
      field: { label: "Visitors", value: "10" },
      will: ({ text }) => `The next ${text || "so many"} visitors are called, whatever the pace is, as far as sessions are free.`,
      request: ({ text }) => ({ method: "POST", path: `${path}/call`, body: { count: Number(text) } }),
    },
    {
      id: "word",
      label: "Show waiting visitors a message",
      verb: "Show the message",
      field: { label: "Word", value: "" },
      isTimed: true,
      will: ({ words }) => `The page of waiting visitors shows it for ${words}, from its next request on.`,
      request: ({ text, span }) => ({ method: "PUT", path: `${path}/word`, body: { word: text, for: span } }),
    },
    {
      id: "empty",
      label: "Empty the room",
      verb: "Empty the room",
      field: { label: "Word", value: "", isOptional: true },
      isHarsh: true,
      isTimed: true,
      will: ({ words }) => `All visitors who wait or are called at ${who} lose their position. Visitors inside stay. The word, if you give one, is shown for ${words}.`,
      request: ({ text, span }) => ({ method: "POST", path: `${path}/empty`, body: text ? { word: text, for: span } : {} }),
    },
  ];
  const undo = override && {
    id: "undo",
    label: override.pause ? "Resume: follow the file again" : "Undo: follow the file again",
    verb: override.pause ? "Resume" : "Undo",
    will: () => `The override of the waiting room of ${who} ends now.`,
    request: () => ({ method: "DELETE", path: `${path}/override` }),
  };
  const endWord = word && {
    id: "end-word",
    label: "End the word",
    verb: "End the word",
    will: () => "Waiting visitors no longer see it.",
    request: () => ({ method: "DELETE", path: `${path}/word` }),
  };
  return [undo, ...acts, endWord].filter(Boolean);
}

const RELOAD = {
  id: "reload",
  label: "Reload",
  verb: "Reload",
  will: () => "The gateway reads its file now. A file with an error changes nothing.",
  request: () => ({ method: "POST", path: "api/reload" }),
};

/**
 * The actions for `{gateway}`, `{routes}`, `{route}`, `{gate}`, `{room}`, `{zone}` or `{zone, key}`, each
 * {id, label, verb, will(fields), request(fields)}.
 */
export function actionsOf({ gateway, routes, route, maintenance, gate, permits, isTried, room, word, zone, key, rate, override }) {
  if (gateway) return [RELOAD];
  if (routes) return maintenances("api/maintenance", "all routes", maintenance);
  if (route !== undefined) return maintenances(`api/routes/${encodeURIComponent(route)}/maintenance`, visible(route), maintenance);
  if (gate !== undefined) return [...gateActs(`api/origins/${encodeURIComponent(gate)}/override`, visible(gate), rate, permits, override), ...findActs(gate, isTried)];
  if (room !== undefined) return roomActs(`api/rooms/${encodeURIComponent(room)}`, visible(room), { override, word });
  const path = `api/zones/${encodeURIComponent(zone)}`;
  if (key === undefined) {
    return overrides(`${path}/override`, { each: `Each key of ${visible(zone)}`, all: visible(zone) }, rate, override);
  }
  const ofKey = `${path}/keys/${encodeURIComponent(key)}`;
  const some = overrides(`${ofKey}/override`, { each: "This key", all: "this key" }, rate, override);
  return override ? [some[0], ...forgetting(ofKey), ...some.slice(1)] : [...forgetting(ofKey), ...some];
}
