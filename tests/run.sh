#!/usr/bin/env bash
# Passes all tests on a fresh Debian with the Rust toolchain: installs what they need and lack, then runs them.
#
#   tests/run.sh          # all
#   tests/run.sh quick    # the unit tests, and of the others those that are done in seconds
set -euo pipefail
cd "$(dirname "$0")/.."

quick=''
case ${1-} in
'') ;;
quick) quick=1 ;;
*) echo "usage: tests/run.sh [quick]" >&2; exit 2 ;;
esac

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian keeps nginx and haproxy where a plain user's PATH does not look.
has() {
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null
}

missing=()
has nginx || missing+=(nginx)
# nginx as a proxy of connections, which names its clients by the PROXY protocol.
[ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || missing+=(libnginx-mod-stream)
has haproxy || missing+=(haproxy)
if ! has prometheus || ! has promtool; then
    missing+=(prometheus)
    # The tests start their own; as a service it would take 9090, where drip's admin port is by default.
    if has systemctl; then as_root systemctl mask prometheus; fi
fi
has chromium || missing+=(chromium)
has chromedriver || missing+=(chromium-driver)
if ! has redis-server; then
    missing+=(redis-server)
    # As with Prometheus: the tests start their own.
    if has systemctl; then as_root systemctl mask redis-server; fi
fi
# The README's commands are run as they stand.
has curl || missing+=(curl)
# A cache beside which drip's shared answers are held to the rules of HTTP.
if ! has varnishd; then
    missing+=(varnish)
    # As with Prometheus: the tests start their own.
    if has systemctl; then as_root systemctl mask varnish varnishncsa; fi
fi
# A database that takes only so many connections. The test starts its own.
if [ ! -d /usr/lib/postgresql ]; then
    missing+=(postgresql)
    if has systemctl; then as_root systemctl mask postgresql; fi
fi
# Clients over HTTP/2.
has nghttp || missing+=(nghttp2-client)
has python3 || missing+=(python3)
# A client over TLS that sends any server name.
has openssl || missing+=(openssl)
# Some tests install clients and servers from PyPI, each into an environment of its own.
python3 -c "import ensurepip, venv" 2>/dev/null || missing+=(python3-venv)
# Clients of HTTP/2, each with a library of its own.
has node || missing+=(nodejs)
has javac || missing+=(default-jdk-headless)
has go || missing+=(golang-go)
has php || missing+=(php-cli)
# The package is installed in a fresh root, and its unit is verified.
has fakeroot || missing+=(fakeroot)
has systemd-analyze || missing+=(systemd)
# Counts the instructions of the budget.
has valgrind || missing+=(valgrind)
# rustup brings no linker.
has cc || missing+=(gcc libc6-dev)
if [ ${#missing[@]} -gt 0 ]; then
    as_root apt-get update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
fi

# Most tests wait for timeouts and departures, so more of them run at once than there are processors.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-4}"

if [ "$quick" ]; then
    # Without simulations and properties, which compute for a minute.
    cargo test --locked --lib --bins -- --skip simulation:: --skip ::scenarios:: --skip ::properties::
    # What starts no gateway, and what a gateway does with one request: none of them waits for long.
    cargo test --locked --test all -- advise:: budget:: checklist:: examples:: gateway::origins gateway::queue \
        import:: init:: layers:: pages:: profiles:: simulate:: \
        --skip advise::live --skip byte_by_byte --skip line_18 --skip line_20 --skip line_22 --skip line_23
    exit
fi

# Tests that load the machine or measure closely. They wait for a part of it (tests/support/machine.rs), and browsers,
# compilers and other programs of the other tests are no longer there when they run.
loads=(
    abuse:: advise::live checklist::leaving checklist::limits gateway::backoff gateway::bodies gateway::find:: gateway::gate::
    gateway::hold:: gateway::pacing gateway::servers gateway::state:: gateway::work goldens::run http2::beside nginx::differential
    nginx::import nginx::ingress collapse::crowd collapse::gate collapse::soak room::crowd shared:: store::grid streams::waiting tls::streams
)
# Tests that nothing at all runs beside: several gateways are a machine full, and 20,000 connections a process full.
whole_machine=(abuse::connections shared::ten_gateways shared::stream)
failed=''
cargo test --locked --no-fail-fast --lib --bins || failed=1
cargo test --locked --doc || failed=1
cargo test --locked --test all -- "${loads[@]/#/--skip=}" || failed=1
RUST_TEST_THREADS=6 cargo test --locked --test all -- "${loads[@]}" "${whole_machine[@]/#/--skip=}" || failed=1
RUST_TEST_THREADS=1 cargo test --locked --test all -- "${whole_machine[@]}" || failed=1
# Spans are not in the default build.
cargo test --locked --features otlp --test all spans || failed=1
[ -z "$failed" ]
