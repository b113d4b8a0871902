#!/usr/bin/env bash
# Installs what the build and the tests need and the machine lacks (Debian). Touches no network when nothing is missing.
set -euo pipefail

fail() {
    echo "setup: $1" >&2
    exit 1
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || return 1
        as_root=(sudo)
    fi
    [ -n "${lists_are_new-}" ] || "${as_root[@]}" apt-get update -qq || return 1
    lists_are_new=yes
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null
}

command -v cargo >/dev/null || fail "cargo is not installed: install rustup (https://rustup.rs) and open a new shell"
for component in rustfmt clippy; do
    name=${component#rust}
    cargo "$name" --version >/dev/null 2>&1 && continue
    echo "setup: adding $component"
    # Without rustup this fails too: its components belong to the toolchain in use.
    rustup component add "$component" ||
        fail "$component is not installed and rustup could not add it: run 'rustup component add $component', or install it as your cargo came"
done

# RocksDB's build needs a C++ compiler and libclang with its headers; the demo needs curl.
required=()
command -v g++ >/dev/null || required+=(build-essential)
[ -n "${LIBCLANG_PATH-}" ] || {
    compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stdbool.h' >/dev/null && compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null
} || required+=(libclang-dev)
command -v curl >/dev/null || required+=(curl)
if [ ${#required[@]} -gt 0 ]; then
    echo "setup: installing ${required[*]}"
    apt_install "${required[@]}" ||
        fail "cannot install ${required[*]}: install these Debian packages (or what they stand for elsewhere) as root, then try again"
fi

# Without these the build is slower or some tests are skipped, no more.
while read -r command package use; do
    command -v "$command" >/dev/null && continue
    echo "setup: installing $package"
    apt_install "$package" || echo "setup: NOTE: $package is missing and cannot be installed: $use"
done <<'END'
ccache ccache RocksDB is compiled again whenever cargo forgets its objects
python3 python3 the tests of the second checker of certificates are skipped
prometheus prometheus the tests of metrics and dashboards are skipped
chromium chromium the tests of the page in a browser are skipped
chromedriver chromium-driver the tests of the page in a browser are skipped
systemd-analyze systemd the test of the systemd unit is skipped
groff groff-base the test of the manual pages is skipped
zsh zsh the completions for zsh are not tested
fish fish the completions for fish are not tested
END

# A program of Python's packages has a place of its own; the version is fixed, so that it finds the same tomorrow.
schemathesis=4.32.5
venv=target/schemathesis
cd "$(dirname "$0")/.."
if command -v python3 >/dev/null && ! "$venv/bin/schemathesis" --version 2>/dev/null | grep -qwF "$schemathesis"; then
    echo "setup: installing schemathesis $schemathesis into $venv"
    python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv || true
    rm -rf "$venv"
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check "schemathesis==$schemathesis"; } || {
        rm -rf "$venv"
        echo "setup: NOTE: schemathesis cannot be installed: the test that looks for undocumented answers is skipped"
    }
fi
