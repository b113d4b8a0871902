#!/usr/bin/env bash
# Checks the files that other programs read, and the bench signature.
set -euo pipefail
failed=0
skip() {
    echo "SKIPPED $1"
    [ -z "${SUPERKO_SKIPPED-}" ] || echo "SKIPPED $1" >>"$SUPERKO_SKIPPED"
}
if command -v promtool >/dev/null; then
    promtool check config dashboards/prometheus.yml || failed=1
    promtool test rules dashboards/alerts_test.yml || failed=1
else
    skip "dashboards/prometheus.yml, dashboards/alerts.yml: promtool is not installed"
fi
if command -v systemd-analyze >/dev/null; then
    # The unit names the installed binary, which need not be there: check a copy that names the built one.
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    sed "s#/usr/local/bin/superko#$PWD/target/release/superko#" systemd/superko.service >"$copy/superko.service"
    systemd-analyze verify --man=no "$copy/superko.service" || failed=1
    systemd-analyze security --offline=true --threshold=20 --no-pager "$copy/superko.service" | tail -n 1
    systemd-analyze security --offline=true --threshold=20 --no-pager "$copy/superko.service" >/dev/null || failed=1
else
    skip "systemd/superko.service: systemd-analyze is not installed"
fi
signature=$(target/release/superko bench --json | sed 's/.*"signature":"\([0-9a-f]*\)".*/\1/')
if [ "$signature" = "$(cat bench/signature.txt)" ]; then
    echo "bench signature $signature"
else
    echo "bench signature is $signature, bench/signature.txt says $(cat bench/signature.txt): the search behaves differently"
    failed=1
fi
exit $failed
