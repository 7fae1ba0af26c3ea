// The token of the admin port, and requests that show it. It stays in this tab: it is forgotten when the tab closes.

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

/** Sends a request to the gateway, with the token if there is one. */
export function call(path, { headers, ...options } = {}) {
  const shown = token() ? { Authorization: `Bearer ${token()}` } : {};
  return fetch(path, { ...options, headers: { ...headers, ...shown }, cache: "no-store" });
}
