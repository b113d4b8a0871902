#!/usr/bin/env bash
# Builds the daemon, starts it, proves the value of 3x3 over HTTP and shows the result.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "demo: building. RocksDB's C++ takes a quarter of an hour or more on two cores the first time; later builds take seconds."
started=$SECONDS
cargo build --release &
build=$!
(
    while sleep 60; do
        objects=$(find target/release/build -path '*librocksdb-sys*' -name '*.o' 2>/dev/null | wc -l)
        echo "demo: still building after $(((SECONDS - started) / 60)) min, $objects C++ objects done (some 340 in all)"
    done
) &
heartbeat=$!
data=$(mktemp -d)
daemon=
cleanup() {
    kill "$heartbeat" 2>/dev/null || true
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$data"
}
trap cleanup EXIT
wait "$build"
kill "$heartbeat"

port=$(((RANDOM % 20000) + 20000))
server=http://127.0.0.1:$port
superko=target/release/superko
echo "demo: starting the daemon on $server"
"$superko" serve --data "$data" --listen "127.0.0.1:$port" 2>"$data/log" &
daemon=$!
for _ in $(seq 100); do
    curl -sf "$server/readyz" >/dev/null && break
    kill -0 "$daemon" 2>/dev/null || { cat "$data/log"; exit 1; }
    sleep 0.1
done
echo "demo: what is 3x3 worth to Black under positional superko?"
curl -sf -X POST "$server/v1/jobs" -H 'content-type: application/json' -d '{"kind":"value","board":"3x3"}'
echo
"$superko" job watch 1 --server "$server"
echo "demo: the finished job"
"$superko" job show 1 --server "$server"
echo "demo: and after Black's B2, at komi 8.5?"
curl -sf "$server/v1/positions?board=3x3&komi=8.5&moves=B2"
echo
echo "demo: stopping the daemon"
kill -TERM "$daemon"
status=0
wait "$daemon" || status=$?
daemon=
echo "demo: the daemon has stopped with status $status"
exit "$status"
