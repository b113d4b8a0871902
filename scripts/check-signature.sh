#!/usr/bin/env bash
# Checks the bench signature.
set -euo pipefail
signature=$(target/release/superko bench --json | sed 's/.*"signature":"\([0-9a-f]*\)".*/\1/')
if [ "$signature" != "$(cat bench/signature.txt)" ]; then
    echo "bench signature is $signature, bench/signature.txt says $(cat bench/signature.txt): the search behaves differently"
    exit 1
fi
echo "bench signature $signature"
