// The stream of samples, and whether it is alive.

import { readEvents } from "./events.js";
import { needsToken, refusedToRead } from "./login.js";
import { drawSoon, last, take as keep } from "./state.js";
import { call } from "./token.js";

const LOST_AFTER = 3500; // ms without an event until the connection counts as lost

const link = { stream: null, heard: Date.now(), lostSince: null, again: 500, retry: null, news: () => {}, each: () => {} };

export const isLost = () => link.lostSince !== null;

function heard() {
  link.heard = Date.now();
  link.again = 500;
  const wasLost = isLost();
  link.lostSince = null;
  if (wasLost) link.news();
}

function lost() {
  link.lostSince ??= Date.now();
  drawSoon();
}

/** What the API tells more about, when it changes. */
const newsOf = (sample) => JSON.stringify([
  sample.reload,
  sample.error,
  sample.origins.map(({ name, healthy, failing }) => [name, healthy, failing]),
  sample.zones.map(({ name, override, overridden_keys }) => [name, override, overridden_keys]),
  sample.store?.up,
  sample.maintenance,
]);

function take(name, data) {
  heard();
  const before = last();
  if (name === "history") {
    JSON.parse(data).samples.forEach(keep);
    if (!before) link.news();
    drawSoon();
  }
  if (name === "sample") {
    const sample = JSON.parse(data);
    const isNews = !before || newsOf(sample) !== newsOf(before);
    keep(sample);
    link.each();
    if (isNews) link.news();
    drawSoon();
  }
}

/** Reads the stream until it ends, which is an error, too. */
async function listen(stream) {
  const since = last()?.seq;
  const path = since === undefined ? "api/live" : `api/live?since=${since}`;
  const response = await call(path, { signal: stream.signal });
  if (stream.signal.aborted) return;
  refusedToRead(response.status === 401);
  if (!response.ok) return;
  await readEvents(response, (name, data) => {
    if (stream.signal.aborted) return;
    try {
      take(name, data);
    } catch (error) {
      reportError(error); // It is no failure of the connection.
    }
  });
}

async function connect() {
  clearTimeout(link.retry);
  link.stream?.abort();
  const stream = new AbortController();
  link.stream = stream;
  link.heard = Date.now();
  await listen(stream).catch(() => {});
  if (stream.signal.aborted) return;
  lost();
  // Without another token the answer stays the same; the form connects again.
  if (!needsToken()) retryLater();
}

/** Connects with the token that the reader has entered. */
export function connectAgain() {
  link.again = 500;
  connect();
}

function retryLater() {
  clearTimeout(link.retry);
  link.retry = setTimeout(() => connect(), link.again);
  link.again = Math.min(5000, link.again * 2);
}

/** Detects a dead connection that looks open, as after sleep: no events arrive. */
function watch() {
  const silent = Date.now() - link.heard;
  if (silent < LOST_AFTER || needsToken()) return;
  lost();
  if (silent > 2 * LOST_AFTER) connect();
}

/** Connects, and calls `news` when the API has more to tell than the samples, and `each` after each sample. */
export function startLink(news, each) {
  Object.assign(link, { news, each });
  document.addEventListener("visibilitychange", () => {
    watch();
    drawSoon();
  });
  addEventListener("online", () => connect());
  setInterval(watch, 1000);
  connect();
}
