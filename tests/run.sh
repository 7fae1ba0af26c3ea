#!/usr/bin/env bash
# Passes all tests on a fresh Debian with the Rust toolchain: installs what they need and lack, then runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian keeps nginx and haproxy where a plain user's PATH does not look.
has() {
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null
}

missing=()
has nginx || missing+=(nginx)
has haproxy || missing+=(haproxy)
has chromium || missing+=(chromium)
has chromedriver || missing+=(chromium-driver)
# rustup brings no linker.
has cc || missing+=(gcc libc6-dev)
if [ ${#missing[@]} -gt 0 ]; then
    as_root apt-get update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
fi

cargo test --locked
