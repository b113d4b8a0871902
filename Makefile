# The one entry point. `make demo` and `make test` work on a Debian machine with rustup and git.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: setup demo test lint bench prior tsan fuzz selftest-long crash-long load-long solve-long

# Objects of RocksDB's C++ are kept between builds where ccache is present; nothing depends on it.
ifneq ($(shell command -v ccache),)
export CC := ccache gcc
export CXX := ccache g++
endif

# Tests and checks that cannot run here add a line with the reason.
export SUPERKO_SKIPPED := $(CURDIR)/target/skipped.txt

setup:
	scripts/setup.sh

demo: setup
	scripts/demo.sh

# RocksDB is compiled in one profile only: whatever links it, clippy included, is built in `release`.
lint: setup
	cargo fmt --all --check
	cargo clippy -p superko-check -p superko-rules -p superko-search --all-targets --features superko-search/mutation -- -D warnings
	cargo clippy --release -p superko-storage -p superko --all-targets -- -D warnings

test: lint
	mkdir -p target && : >$(SUPERKO_SKIPPED)
	cargo test -p superko-check -p superko-rules -p superko-search --features superko-search/mutation
	cargo test --release -p superko-storage -p superko
	scripts/check-signature.sh
	@echo "make test: all passed, $$(wc -l <$(SUPERKO_SKIPPED)) skipped" && cat $(SUPERKO_SKIPPED)

bench:
	cargo run --release -- bench

# Trains the built-in prior again from nothing; the file comes out the same as long as the search behaves the same. Without the larger
# training boards, which README measures unseen.
prior:
	cargo run --release -- prior train --without 2x8 --without 3x6 --without 4x4 --without 4x5 --out crates/search/src/prior/builtin.prior

# Looks for data races; needs a nightly toolchain with its sources and says so where there is none. Compiles for some minutes.
tsan:
	scripts/tsan.sh

# Fuzzes the checker of certificates; needs a nightly toolchain and cargo-fuzz and says so where they are not.
fuzz:
	cargo build --release
	scripts/fuzz.sh

selftest-long:
	cargo build --release
	for board in 1x6 2x3 2x4 3x3; do target/release/superko selftest --board $$board --seconds 600 --seed 1; done
	target/release/superko selftest --seconds 600 --seed 1

# 200 kills, death at every single step, 50 power cuts (as root), 50 faults of each other kind: about half an hour.
crash-long:
	SUPERKO_KILLS=200 cargo test --release -p superko --test durability -- --nocapture
	SUPERKO_FAULTS=1000 cargo test --release -p superko --test faults -- --nocapture death_at_any_step
	SUPERKO_FAULTS=50 cargo test --release -p superko --test faults -- --nocapture --skip death_at_any_step

load-long:
	SUPERKO_LOAD_SECONDS=600 cargo test --release -p superko --test load -- --nocapture --test-threads 1

solve-long:
	cargo build --release
	for proof in '2x8 15.5' '3x6 17.5' '4x5 19.5' '2x9 17.5' '3x7 20.5' '2x10 3.5' '2x10 4.5' '1x15 1.5' '1x15 2.5' '1x16 0.5' '1x16 1.5'; do \
		set -- $$proof; target/release/superko solve --board $$1 --komi $$2 --table 4GiB --json; done
