#!/usr/bin/env bash
# Runs the tests beside real programs, by group: installs the programs of a group, then runs its tests.
#
#   tests/run.sh                # all groups
#   tests/run.sh redis nginx    # these groups
#   tests/run.sh budget         # what a request costs: benches/budget.toml
#   tests/run.sh long           # hours of tests: in the nightly run, and before the changes that CONTRIBUTING.md names
#
# `cargo test` runs the tests that need no other program.
set -euo pipefail
cd "$(dirname "$0")/.."

names=()
declare -A packages
group() {
    names+=("$1")
    packages[$1]="${*:2}"
}

# The groups: the modules of tests/counterparts, each with the packages of Debian that it needs.
group chromium chromium chromium-driver python3-venv redis-server
group curl curl nghttp2-client openssl
group documents bash curl git nginx openssl python3 redis-server
group haproxy curl haproxy libnginx-mod-stream nginx
group languages chromium chromium-driver curl default-jdk-headless golang-go haproxy nginx nodejs openssl php-cli python3-venv
group nginx curl libnginx-mod-stream nginx
group package fakeroot systemd
group prometheus prometheus
group redis redis-server
group system
group varnish nginx varnish

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs the packages that are missing. On other systems than Debian it installs nothing, and a test whose program is
# missing fails.
install() {
    command -v dpkg-query >/dev/null || return 0
    local package missing=()
    for package; do
        dpkg-query --show --showformat '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    # The tests start these programs themselves. A service would take the usual port.
    if command -v systemctl >/dev/null; then
        as_root systemctl mask prometheus redis-server varnish varnishncsa || true
    fi
    as_root apt-get update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}"
}

run_budget() {
    install gcc libc6-dev valgrind
    cargo bench --locked --profile dev --bench budget -- --thin
}

run_long() {
    # shellcheck disable=SC2086
    install ${packages[*]} gcc libc6-dev valgrind
    export DRIP_LONG=1
    cargo test --locked --release --no-fail-fast --lib
    cargo test --locked --no-fail-fast --test plain -- --include-ignored
    # The target `long` has the tests of the group redis, too.
    for name in "${names[@]}"; do
        [ "$name" = redis ] || DRIP_GROUP=$name cargo test --locked --no-fail-fast --test counterparts -- --include-ignored "$name::"
    done
    # One at a time: they fill the machine.
    RUST_TEST_THREADS=1 cargo test --locked --no-fail-fast --test long
    # Spans are not in the default build.
    cargo test --locked --features otlp --test plain spans
    # As packages are built.
    cargo bench --locked --profile dev --bench budget
}

case ${1-} in
budget | long)
    [ $# -eq 1 ] || { echo "usage: tests/run.sh $1" >&2; exit 2; }
    "run_$1"
    exit
    ;;
esac

chosen=("$@")
[ $# -gt 0 ] || chosen=("${names[@]}")
needed=()
for name in "${chosen[@]}"; do
    [ -n "${packages[$name]+known}" ] || { echo "no group is called $name; the groups: ${names[*]}, budget, long" >&2; exit 2; }
    # shellcheck disable=SC2206
    needed+=(${packages[$name]})
done
install "${needed[@]}"

run() {
    cargo test --locked --no-fail-fast --test counterparts -- "${@/%/::}" || status=1
}

# Browsers and compilers use the processors, so fewer of these tests run at once than of the others.
export RUST_TEST_THREADS=8
status=0
together=()
for name in "${chosen[@]}"; do
    [ "$name" = redis ] || together+=("$name")
done
# Most tests wait most of the time, so these groups run side by side in one process.
case ${#together[@]} in
0) ;;
1) DRIP_GROUP=${together[0]} run "${together[@]}" ;;
*) run "${together[@]}" ;;
esac
if [ ${#together[@]} -lt ${#chosen[@]} ]; then
    # These tests measure closely, so browsers and compilers must not run beside them.
    export DRIP_GROUP=redis RUST_TEST_THREADS=4
    run redis
    # The simulated Redis beside a real one.
    cargo test --locked --lib redis_server -- --ignored || status=1
fi
exit $status
