// Requests that change something. The token stays in this tab: it is forgotten when the tab closes.

import { placeOf, visible } from "./text.js";

const NAME = "drip.token";

export function token() {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

export function keepToken(text) {
  try {
    if (text.trim()) sessionStorage.setItem(NAME, text.trim());
    else sessionStorage.removeItem(NAME);
  } catch {
    // A browser that forbids storage: the gateway will ask for the token again.
  }
}

/** Why a request failed, in words of the gateway. `needsToken`: another token may help. */
class Refused extends Error {
  constructor(message, needsToken) {
    super(message);
    this.needsToken = needsToken;
  }
}

function reasonOf(status, answer) {
  const { error } = answer ?? {};
  if (typeof error === "string") return visible(error);
  const problems = error?.problems ?? [];
  if (problems.length === 0) return `the gateway answered ${status}`;
  return problems.map((problem) => [placeOf(problem), visible(problem.message)].filter(Boolean).join(": ")).join("\n");
}

/** Sends a request that changes something, and returns the answer. */
export async function send(method, path, body) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token()) headers.Authorization = `Bearer ${token()}`;
  let response;
  try {
    response = await fetch(path, { method, headers, cache: "no-store", body: body && JSON.stringify(body) });
  } catch {
    throw new Refused("the gateway does not answer", false);
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new Refused(reasonOf(response.status, answer), response.status === 401);
  return answer;
}
