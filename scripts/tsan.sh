#!/usr/bin/env bash
# Runs the threads' tests under ThreadSanitizer: the search on a shared table, and the mapped table without RocksDB, which the
# sanitizer cannot see into. The standard library is built anew with it, so that its locks and channels are seen too.
set -euo pipefail
skip() {
    echo "SKIPPED tsan: $1"
    [ -z "${SUPERKO_SKIPPED-}" ] || echo "SKIPPED tsan: $1" >>"$SUPERKO_SKIPPED"
    exit 0
}
sysroot=$(rustc +nightly --print sysroot 2>/dev/null) || skip "no nightly toolchain (rustup toolchain install nightly --component rust-src)"
[ -e "$sysroot/lib/rustlib/src/rust/library/std" ] || skip "nightly has no sources (rustup component add rust-src --toolchain nightly)"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
[ -e "$sysroot/lib/rustlib/$host/lib/librustc-nightly_rt.tsan.a" ] || skip "ThreadSanitizer is not available for $host"
export RUSTFLAGS="-Zsanitizer=thread" TSAN_OPTIONS="halt_on_error=1" CARGO_TARGET_DIR=target/tsan
build=(--target "$host" -Zbuild-std)
cargo +nightly test "${build[@]}" -p superko-storage --no-default-features --lib threads
cargo +nightly test "${build[@]}" -p superko-search --test parallel
echo "tsan: no data race"
