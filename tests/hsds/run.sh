#!/usr/bin/env bash
# HSDS both ways: what h5live writes is read by h5pyd through HSDS, and what HSDS has written by h5live. HSDS, h5pyd and h5py
# come from PyPI into a virtual environment. Nothing listens on a network. What cannot be set up is skipped with a line.
# usage: run.sh H5LIVE VENV
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
h5live=$1 venv=$2
if [ ! -x "$venv/bin/hsload" ]; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet hsds==1.0.2 h5pyd==1.0.0 h5py; } ||
        { rm -rf "$venv"; echo "skipped: HSDS cannot be installed"; exit 0; }
fi
work=$(mktemp -d)
mkdir "$work/root" "$work/root/b" "$work/sockets"
running=
stop() { [ -z "$running" ] || "$here/stop.sh" "$work/sockets"; running=; }
trap 'stop; rm -rf "$work"' EXIT
start() {
    "$here/start.sh" "$venv" "$work/root" b "$work/sockets" || { echo "skipped: HSDS does not start"; exit 0; }
    running=yes
    . "$work/sockets/env.sh"
}
python=$venv/bin/python
compare() { echo "$1 and $2:"; "$python" "$here/compare.py" "$@"; }
domain() { echo "hsds:$work/root/b?domain=/home/test_user1/$1&owner=test_user1"; }
# Defects of HSDS 1.0.2 and h5pyd 1.0.0, each with the names that it concerns:
# - an empty sequence reads as the number 0
OURS_WITHOUT=/ragged
# - hsload gives contiguous datasets chunks, and other datasets larger ones
THEIRS_WITHOUT=chunks

"$python" "$here/source.py" "$work/source.h5"
"$python" "$here/source.py" "$work/for_hsload.h5" --for-hsload
"$h5live" copy --quiet "$work/source.h5" "$(domain ours)"
start
compare "$work/source.h5" hdf5://home/test_user1/ours --without "$OURS_WITHOUT"
hsload "$work/for_hsload.h5" /home/test_user1/theirs
"$python" "$here/edit.py" /home/test_user1/ours
stop
"$h5live" copy --quiet "$(domain theirs)" "$work/theirs.h5"
compare "$work/for_hsload.h5" "$work/theirs.h5" --without "$THEIRS_WITHOUT"
"$h5live" check --data "$(domain theirs)"
"$h5live" check --data "$(domain ours)"
# Edits in turn: HSDS has edited what we wrote, and we edit that.
"$h5live" copy --quiet "$(domain ours)" "$work/edited.h5"
"$python" "$here/edited.py" "$work/edited.h5" 1
printf 'v\n7\n8\n' | "$h5live" record "$(domain ours)" recorded
start
"$python" "$here/edited.py" hdf5://home/test_user1/ours 2
stop
echo "HSDS reads what h5live writes, and h5live what HSDS has written"
