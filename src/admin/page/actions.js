// What can be done to a zone, a key or the gateway, in words and as a request.

import { visible } from "./text.js";

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
      isTimed: true,
      will: ({ rate: to, words }) => `${who.each} gets ${to || "the rate above"}${rate ? ` instead of ${visible(rate)}` : ""} for ${words}. ${BACK}`,
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
      will: ({ words }) => `For ${words} no request of ${who.all} is delayed or rejected; what would have been is counted. ${BACK}`,
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
    will: () => `What differs from the file for ${who.all} ends now.`,
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
      will: () => "What the key has used is forgotten. Requests that wait keep their order and pace.",
      request: () => ({ method: "DELETE", path: `${path}?drop=false` }),
    },
    {
      id: "drop",
      label: "Forget the key and reject who waits",
      verb: "Forget and reject",
      isHarsh: true,
      will: () => "What the key has used is forgotten, and its waiting requests get 503.",
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
    will: ({ words }) => `New requests of ${who} get 503 for ${words}, with the route's page if it has one. Those that wait or run go on. ${BACK}`,
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

const RELOAD = {
  id: "reload",
  label: "Reload",
  verb: "Reload",
  will: () => "The gateway reads its file now. A file with an error changes nothing.",
  request: () => ({ method: "POST", path: "api/reload" }),
};

/**
 * The actions for `{gateway}`, `{routes}`, `{route}`, `{zone}` or `{zone, key}`, each
 * {id, label, verb, will(fields), request(fields)}.
 */
export function actionsOf({ gateway, routes, route, maintenance, zone, key, rate, override }) {
  if (gateway) return [RELOAD];
  if (routes) return maintenances("api/maintenance", "all routes", maintenance);
  if (route !== undefined) return maintenances(`api/routes/${encodeURIComponent(route)}/maintenance`, visible(route), maintenance);
  const path = `api/zones/${encodeURIComponent(zone)}`;
  if (key === undefined) {
    return overrides(`${path}/override`, { each: `Each key of ${visible(zone)}`, all: visible(zone) }, rate, override);
  }
  const ofKey = `${path}/keys/${encodeURIComponent(key)}`;
  const some = overrides(`${ofKey}/override`, { each: "This key", all: "this key" }, rate, override);
  return override ? [some[0], ...forgetting(ofKey), ...some.slice(1)] : [...forgetting(ofKey), ...some];
}
