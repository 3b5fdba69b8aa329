#!/bin/sh
# Give the tool a private Python environment (in PATCHLOCK_CACHE_DIR, default ~/.cache/patchlock), then hand over to it.
set -eu; log=; (: >&2) 2>/dev/null || exec 2>/dev/null; exec 3>&2 # while building, 1 and 2 are the log, 3 is the user
fail() { has() { grep -qs "$@" "$log"; }; has 'No space' && set "the disk is full (see $log): make room"
    has 'you require' && set "$lock needs $(sed -n 's/.*require \([^{]*\).*==\(.*\), .*/\1 \2/p' "$log") (see $log):" \
        "name an index or a folder that has it; \`pip download --require-hashes -d FOLDER -r $lock\` fills one"
    has -i certificate && set "a server's certificate is not trusted (see $log): set SSL_CERT_FILE to your network's" &&
        [ ! -e "${SSL_CERT_FILE:-/}" ] && set "$SSL_CERT_FILE is not there (see $log): correct or remove SSL_CERT_FILE"
    has 'init.*cache' && set "uv cannot use its cache (see $log): set UV_CACHE_DIR"; echo "patchlock: $*" >&3; exit 1; }
uv_on_path() { case $(uv --version) in 'uv 0.9.'* | 'uv 0.'[1-9][0-9]* | 'uv '[1-9]*) uv=uv ;; *) false ;; esac; }
uv_from_index() { # by the first pip there is: Python's, a venv's, or Debian's wheel of it (a bare python3 has neither)
    no='found no Python (python3 on PATH), and '; sed -n '/^uv==/,/[^\\]$/p' "$lock" >"$work/uv.txt"
    [ "${PIP_CERT-}${REQUESTS_CA_BUNDLE-}${CURL_CA_BUNDLE-}" ] || PIP_CERT=${SSL_CERT_FILE-}; uv=$work/uv/bin/uv
    export PIP_CERT PIP_INDEX_URL="${PIP_INDEX_URL:-${UV_DEFAULT_INDEX:-${UV_INDEX_URL-}}}" # as pip reads none of uv's
    if python3 -I -m pip --version; then set -- python3 -I -m pip
    elif python3 -I -m venv "$work/pip"; then set -- "$work/pip/bin/python" -I -m pip
    elif command -v python3 && no='found no pip (install python3-venv), and ' && (cd "$work" && apt-get download \
        python3-pip-whl && dpkg -x ./*.deb . && mv usr/share/*/pip-*.whl whl); then set -- python3 "$work/whl/pip"
    else return 1; fi; "$@" install --require-hashes --only-binary :all: --no-deps -t "$work/uv" -r "$work/uv.txt" ||
        ! no="pip cannot get uv ($(grep -om1 'connection broken' "$log" || grep ^ERROR "$log" | tail -n 1)), and "; }
uv_from_archive() { case $(uname -s)-$(uname -m) in # sha256: known-checksums of astral-sh/setup-uv; musl is static
    Linux-x86_64) set x86_64-unknown-linux-musl a4742988791c9aeae68c78150d6cba762062ad2a47e53738c2779d2b596bfcdb ;;
    Linux-aarch64) set aarch64-unknown-linux-musl 8767a0e77f2cd45436401b1b42bf7e9ed5a4a91a74a5305d6fe93249d0f6dbc5 ;;
    Darwin-x86_64) set x86_64-apple-darwin b3b2137477cf96c9686ebfb71524614cec780c673fd73e59bce099aef02e70e8 ;;
    Darwin-arm64) set aarch64-apple-darwin 5bb0e5fe008a773c3dbcb97ff79cd89e1241464fe9d2f986d52ad8f1b037bd62 ;;
    *) fail "found no uv for $(uname -sm) (see $log): install uv 0.9 or later, put it on PATH and run this again" ;;
    esac; from=${archive:-https://github.com/astral-sh/uv/releases/download/0.12.5/uv-$1.tar.gz} uv=$work/uv-$1/uv
    cp "$from" "$work/uv.tgz" || curl -fsSL -o "$work/uv.tgz" "$from" || wget -qO "$work/uv.tgz" "$from" ||
        python3 -Ic 'import sys, urllib.request as u; u.urlretrieve(*sys.argv[1:])' "$from" "$work/uv.tgz" ||
        fail "${no}cannot get uv from $from (see $log): check the network and, if you have a mirror, UV_DEFAULT_INDEX"
    echo "$2  $work/uv.tgz" | { sha256sum -c || shasum -a 256 -c; } ||
        fail "$from is not uv-$1.tar.gz of uv 0.12.5, its sha256 is not $2: get that file again"
    tar -xzf "$work/uv.tgz" -C "$work" || fail "cannot unpack $from (see $log): install tar and gzip"; }
build() ( # beside, and renamed into place when complete: others may build the same, and any of them may be killed
    work=$(mkdir -p "$cache" 2>&- && mktemp -qd "$tool.XXXXXX") || fail "cannot write $cache: set PATCHLOCK_CACHE_DIR"
    (while sleep 10 3>&-; kill -0 $$; do echo 'patchlock: still preparing...' >&3; done) >/dev/null 2>&1 & beat=$!
    trap 'rm -rf "$work"; kill $beat' EXIT && trap 'exit 1' HUP INT TERM && exec </dev/null >"$log" 2>&1
    unset PYTHONPATH PIP_CONSTRAINT PIP_PREFIX UV_CONSTRAINT UV_BUILD_CONSTRAINT UV_EXCLUDE_NEWER UV_PROJECT
    find "$cache" -maxdepth 1 -name 'tool-*.??????' -mtime +1 -exec rm -rf {} + # what a killed one left
    [ -x "$tool/complete" ] || [ ! -e "$tool" ] || mv "$tool" "$work/incomplete"; no='' env=$work/env
    [ "${UV_OFFLINE-}" ] || unset UV_OFFLINE; export UV_NO_CONFIG=1 PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0
    { [ -z "$archive" ] && { uv_on_path || uv_from_index; }; } || uv_from_archive
    python=$("$uv" python find --system 'cpython>=3.11,<3.15') && python=$(readlink -f "$python") || python=3.12
    "$uv" venv --no-project --relocatable --python "$python" "$env" ||
        fail "found no Python 3.11 to 3.14, and none to download (see $log): install python3.12 and run this again"
    "$uv" pip sync --python "$env/bin/python" --require-hashes --no-build --compile-bytecode "$lock" ||
        fail "cannot install $lock (see $log, which ends: $(tail -n 1 "$log")): check the network and run this again"
    ln -s "$(readlink -f "$env/bin/python")" "$env/complete" # not so once an upgrade of the system takes that away
    "$env/bin/python" -Ic 'import os, sys; os.rename(*sys.argv[1:])' "$env" "$tool" || [ -x "$tool/complete" ] ||
        fail "cannot put the environment in $tool (see $log): remove that and run this again" )
{ true 4<&0; } 2>/dev/null || exec </dev/null # a closed stdin would be the number of the next file that is opened
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) lock=${PATCHLOCK_LOCK:-$here/lockfiles/patchlock.txt}
module=${PATCHLOCK_MODULE:-patchlock install} archive=${PATCHLOCK_UV_ARCHIVE:-} # another lock and module: for tests/run
cache=${PATCHLOCK_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/patchlock}; unset PYTHONHOME
digest=$({ cksum "$lock" || sha256sum "$lock"; } 2>/dev/null) || fail "$lock is missing: run this in a git clone"
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac; tool=$cache/tool-${digest%% *}-$(uname -m) log=$tool.log
trap '(fail "interrupted; nothing is lost: run this again") || exit 130' INT; unset PATCHLOCK_LOCK PATCHLOCK_MODULE
[ -x "$tool/complete" ] || { echo 'patchlock: preparing (first run only, about 30 s)...' >&2 && build; } || exit 1
# shellcheck disable=SC2086 # a module and its first arguments
exec env PATCHLOCK_BOOTSTRAP="$here/install.sh" PYTHONPATH="$here/installer" "$tool/bin/python" -P -m $module "$@" 3>&-
