#!/bin/sh
# usage: tools/venv.sh core|dev|kernels|kernels-oldest|page|live|minimum [PACKAGE==VERSION...]
# Makes .venv and installs the project into it (dev: with the tools of its tests and checks), or
# .venv-kernels or .venv-kernels-oldest (dev and kernels together, and the packages named), or
# .venv-page (dev, report and docs), .venv-live (dev and live), or .venv-minimum (every extra but
# the kernels').
# Nothing happens when the project's metadata, the interpreter and the extra are those of last time.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
extra=$1
shift
folder=.venv
case "$extra" in kernels* | page | live | minimum) folder=.venv-$extra ;; esac

stop() {
    echo "error: $*" >&2
    exit 2
}

command -v "$python" >/dev/null 2>&1 ||
    stop "no $python on this machine; on Debian or Ubuntu: sudo apt install python3 python3-venv"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "$python is Python $version and the project needs 3.10 or later;" \
        "name a later one: make PYTHON=python3.12 ..."
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    stop "$python cannot make virtual environments;" \
        "on Debian or Ubuntu: sudo apt install python3-venv (or python$version-venv)"

stamp=$folder/installed
wanted="$version $(pwd) $(cksum <pyproject.toml)${*:+ $*}"
have=$(cat "$stamp" 2>/dev/null || true)
case "$have" in
"dev $wanted" | "$extra $wanted") exit 0 ;;
esac

# An environment of another interpreter, of another folder or half made is made anew.
case "$have" in
*" $version $(pwd) "*) ;;
*) "$python" -m venv --clear "$folder" ;;
esac
rm -f "$stamp"
case "$extra" in
core) requirement=. ;;
kernels*) requirement=".[kernels,dev]" ;;
page) requirement=".[report,docs,dev]" ;;
live) requirement=".[live,dev]" ;;
minimum) requirement=".[dev,hub,search,live,fit,report]" ;;
*) requirement=".[$extra]" ;;
esac
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$requirement" "$@"
# Where PYTHONDONTWRITEBYTECODE is set every start would compile the project anew, 0.1 s of CPU.
"$folder/bin/python" -m compileall -q planner autotune hwprofiles kernels
echo "$extra $wanted" >"$stamp"
