#!/usr/bin/env bash
# Installs what the build and the tests need and the machine lacks (Debian). Touches no network when nothing is missing.
set -euo pipefail
missing=()
command -v g++ >/dev/null || missing+=(build-essential)
compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stdbool.h' >/dev/null && compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null ||
    missing+=(libclang-dev)
command -v ccache >/dev/null || missing+=(ccache)
command -v curl >/dev/null || missing+=(curl)
command -v promtool >/dev/null || missing+=(prometheus)
command -v systemd-analyze >/dev/null || missing+=(systemd)
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
echo "setup: installing ${missing[*]}"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
