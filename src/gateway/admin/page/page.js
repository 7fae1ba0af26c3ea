// The live page: what is drawn when.

import { startAct } from "./act.js";
import { reach, startAddress } from "./address.js";
import { askAll } from "./ask.js";
import { readInk } from "./canvas.js";
import { showFile } from "./file.js";
import { showHeadline, startHeadline } from "./headline.js";
import { showKeys } from "./keys.js";
import { showLimited, startLimited } from "./limited.js";
import { connectAgain, isLost, startLink } from "./link.js";
import { showLogin, startLogin } from "./login.js";
import { showLink, showNotices } from "./notices.js";
import { showOrigins } from "./origins.js";
import { renewFinds } from "./ownfinds.js";
import { showRoutes, startRoutes } from "./routes.js";
import { drawSoon, drawWith, last, ranked, view } from "./state.js";
import { showStore } from "./store.js";
import { $ } from "./text.js";
import { makeTotals, showTotals } from "./totals.js";
import { cards, showZones } from "./zones.js";

const ASK_EVERY = 5000; // ms between two requests for totals, origins and settings

function draw() {
  showLink();
  showLogin();
  if (!last()) return;
  showNotices();
  showHeadline();
  showTotals();
  showZones(ranked());
  showRoutes();
  showLimited();
  showKeys();
  showOrigins();
  showStore();
  showFile();
  for (const card of cards.values()) card.draw();
  reach(cards);
}

drawWith(draw);
makeTotals();
readInk();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readInk();
  drawSoon();
});
addEventListener("resize", drawSoon);
$("find").addEventListener("input", ({ target }) => {
  view.find = target.value.trim().toLowerCase();
  drawSoon();
});
$("more").addEventListener("click", () => {
  view.all = true;
  drawSoon();
});
startAddress();
startHeadline();
startRoutes(drawSoon);
startLimited();
startAct(askAll);
startLogin(() => {
  connectAgain();
  askAll();
});
setInterval(() => {
  if (!document.hidden && !isLost()) askAll();
}, ASK_EVERY);
startLink(askAll, renewFinds);
askAll();
