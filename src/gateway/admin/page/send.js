// Requests that change something.

import { placeOf, visible } from "./text.js";
import { call } from "./token.js";

/** Why a request failed, in words of the gateway; `status` is 0 without an answer. `needsToken`: another token may help. */
class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
      this.needsToken = [401, 403].includes(status);
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
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await call(path, { method, headers, body: body && JSON.stringify(body) });
  } catch {
    throw new Refused("the gateway does not answer", 0);
  }
  const answer = await response.json().catch(() => null);
  // 403: the token only reads.
  if (!response.ok) throw new Refused(reasonOf(response.status, answer), response.status);
  return answer;
}
