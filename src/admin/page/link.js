// The stream of samples, and whether it is alive.

import { drawSoon, last, take } from "./state.js";

const LOST_AFTER = 3500; // ms without an event until the connection counts as lost

const link = { source: null, heard: Date.now(), lostSince: null, again: 500, retry: null, news: () => {} };

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
]);

function connect() {
  clearTimeout(link.retry);
  link.source?.close();
  link.heard = Date.now();
  const since = last()?.seq;
  const source = new EventSource(since === undefined ? "api/live" : `api/live?since=${since}`);
  link.source = source;
  source.addEventListener("history", ({ data }) => {
    heard();
    const first = !last();
    JSON.parse(data).samples.forEach(take);
    if (first) link.news();
    drawSoon();
  });
  source.addEventListener("sample", ({ data }) => {
    heard();
    const sample = JSON.parse(data);
    const before = last();
    const isNews = !before || newsOf(sample) !== newsOf(before);
    take(sample);
    if (isNews) link.news();
    drawSoon();
  });
  source.addEventListener("error", () => {
    lost();
    // The browser reconnects by itself, except after a response that is not a stream.
    if (source.readyState === EventSource.CLOSED) retryLater();
  });
}

function retryLater() {
  clearTimeout(link.retry);
  link.retry = setTimeout(() => connect(), link.again);
  link.again = Math.min(5000, link.again * 2);
}

/** Detects a dead connection that looks open, as after sleep: no events arrive. */
function watch() {
  const silent = Date.now() - link.heard;
  if (silent < LOST_AFTER) return;
  lost();
  if (silent > 2 * LOST_AFTER) connect();
}

/** Connects, and calls `news` when the API has more to tell than the samples. */
export function startLink(news) {
  link.news = news;
  document.addEventListener("visibilitychange", () => {
    watch();
    drawSoon();
  });
  addEventListener("online", () => connect());
  setInterval(watch, 1000);
  connect();
}
