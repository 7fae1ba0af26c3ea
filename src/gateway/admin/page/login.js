// The form for the token of a gateway that is read with one.

import { keepToken, token } from "./token.js";
import { known } from "./state.js";
import { $, setText } from "./text.js";

const asked = { isOpen: false, refused: "" };

/** Whether the gateway wants a token, or another one, to be read. */
export const needsToken = () => asked.isOpen;

/** Notes whether the gateway refused to be read. */
export function refusedToRead(isRefused) {
  asked.isOpen = isRefused;
  asked.refused = isRefused ? token() : "";
}

export function showLogin() {
  const { isOpen, refused } = asked;
  $("login").hidden = !isOpen;
  document.body.classList.toggle("locked", isOpen && known.samples.length === 0);
  if (!isOpen) return;
  setText($("login-error"), refused ? "The gateway does not know this token." : "");
  $("login-error").hidden = !refused;
}

/** `enter` is called when the reader has entered a token. */
export function startLogin(enter) {
  $("login").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken($("login-token").value);
    enter();
  });
}
