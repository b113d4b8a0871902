#!/usr/bin/env bash
# Builds the daemon, starts it, proves the value of 3x3 over HTTP and shows the result.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(mktemp -d)
heartbeat=
daemon=
stop() {
    [ -z "$1" ] || { kill "$1" && wait "$1"; } 2>/dev/null || true
}
cleanup() {
    stop "$heartbeat"
    stop "$daemon"
    rm -rf "$data"
}
trap cleanup EXIT

echo "demo: building. RocksDB's C++ takes a quarter of an hour or more on two cores the first time; later builds take seconds."
touch "$data/started"
(
    # Short sleeps: the last one outlives this loop.
    for ((second = 1; ; second++)); do
        sleep 1
        ((second % 60 == 0)) || continue
        # Older objects are those of earlier builds.
        objects=$(find target/release/build -path '*librocksdb-sys*' -name '*.o' -newer "$data/started" 2>/dev/null | wc -l)
        echo "demo: still building after $((second / 60)) min, $objects C++ objects done (some 340 in all)"
    done
) &
heartbeat=$!
cargo build --release
stop "$heartbeat"
heartbeat=

superko=target/release/superko
echo "demo: starting the daemon"
# The system picks a free port, the log says which. A small table is enough for a small board.
echo 'table = "64MiB"' >"$data/superko.toml"
"$superko" serve --config "$data/superko.toml" --data "$data/data" --listen 127.0.0.1:0 2>"$data/log" &
daemon=$!
server=
for _ in $(seq 300); do
    kill -0 "$daemon" 2>/dev/null || { cat "$data/log"; exit 1; }
    server=$(sed -n 's#.* listening address=\([^ ]*\) .*#http://\1#p' "$data/log")
    [ -n "$server" ] && curl -sf "$server/readyz" >/dev/null && break
    sleep 0.1
done
curl -sf "$server/readyz" >/dev/null || { echo "demo: the daemon is not ready after 30 s"; cat "$data/log"; exit 1; }
echo "demo: the daemon listens on $server"
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
