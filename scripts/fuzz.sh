#!/usr/bin/env bash
# Fuzzes the checker of certificates for FUZZ_SECONDS (an hour unless set), beginning with certificates of small boards.
# Needs a nightly toolchain and cargo-fuzz, and says so where they are not.
set -euo pipefail
skip() {
    echo "SKIPPED fuzz: $1"
    exit 0
}
rustc +nightly --version >/dev/null 2>&1 || skip "no nightly toolchain (rustup toolchain install nightly)"
cargo fuzz --version >/dev/null 2>&1 || skip "no cargo-fuzz (cargo install cargo-fuzz --locked)"
superko=$PWD/target/release/superko
export CARGO_TARGET_DIR=$PWD/target/fuzz
corpus=$CARGO_TARGET_DIR/corpus
mkdir -p "$corpus"
# Plain, for the fuzzer cannot see into what is compressed; and some as they are.
for proof in '1x1 0.5' '1x2 0.5' '1x2 -0.5' '1x3 0.5' '1x3 2.5' '1x3 3.5' '1x4 3.5' '2x2 0.5' '2x2 1.5' '2x3 0.5' '1x6 0.5' '3x3 8.5'; do
    set -- $proof
    name=$corpus/$1_$2
    "$superko" solve --board "$1" --komi "$2" --table 16MiB --certificate "$name.sgc" >/dev/null 2>&1 || continue
    zstd -dqf "$name.sgc" -o "$name"
    [ "$1" = 1x3 ] || rm "$name.sgc"
done
cd crates/check
# A scoped thread that is still on its way out looks like a leak.
cargo +nightly fuzz run check "$corpus" -- -detect_leaks=0 -max_total_time="${FUZZ_SECONDS:-3600}" -timeout=60 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1
