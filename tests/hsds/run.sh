#!/usr/bin/env bash
# HSDS both ways: what h5live writes is read by h5pyd through HSDS, and what HSDS has written by h5live. First with folders,
# then with an S3 server of this machine. HSDS, h5pyd and h5py come from PyPI into a virtual environment. What cannot be set
# up is skipped with a line.
# usage: run.sh H5LIVE VENV PYTHON, a Python with moto[server]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
h5live=$1 venv=$2 python_of_s3=$3
if [ ! -x "$venv/bin/hsload" ]; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet hsds==1.0.2 h5pyd==1.0.0 h5py; } ||
        { rm -rf "$venv"; echo "skipped: HSDS cannot be installed"; exit 0; }
fi
python=$venv/bin/python
work=$(mktemp -d)
mkdir "$work/root" "$work/root/bucket" "$work/sockets"
running= server=
stop() { [ -z "$running" ] || "$here/stop.sh" "$work/sockets"; running=; }
end() {
    stop
    [ -z "$server" ] || kill "$server"
    rm -rf "$work"
}
trap end EXIT
compare() { echo "$1 and $2:"; "$python" "$here/compare.py" "$@"; }
# Defects of HSDS 1.0.2 and h5pyd 1.0.0, each with the names that it concerns:
# - an empty sequence reads as the number 0
OURS_WITHOUT=/ragged
# - hsload gives contiguous datasets chunks, and other datasets larger ones
THEIRS_WITHOUT=chunks

# Starts HSDS on the storage: a folder of buckets, or the URL of an S3 server.
start() {
    "$here/start.sh" "$venv" "$storage" bucket "$work/sockets" || { echo "skipped: HSDS does not start"; exit 0; }
    running=yes
    . "$work/sockets/env.sh"
}

# The location of a domain there.
domain() {
    case $storage in
        http:*) echo "hsds+s3://bucket/home/test_user1/$1?owner=test_user1&endpoint=$storage&region=us-east-1&allow_http=yes" ;;
        *) echo "hsds:$storage/bucket?domain=/home/test_user1/$1&owner=test_user1" ;;
    esac
}

# Puts the native file into the bucket, and says where it is.
native_file() {
    local at
    case $storage in
        http:*)
            at="s3://bucket/native/source.h5?endpoint=$storage&region=us-east-1&allow_http=yes"
            "$h5live" copy --quiet "$work/source.h5" "$at"
            ;;
        *)
            at=$storage/bucket/native/source.h5
            mkdir "$storage/bucket/native"
            cp "$work/source.h5" "$at"
            ;;
    esac
    echo "$at"
}

both_ways() {
    storage=$1
    echo "HSDS on $storage"
    "$h5live" copy --quiet "$work/source.h5" "$(domain ours)"
    "$h5live" copy --link "$(native_file)" "$(domain linked)"
    start
    compare "$work/source.h5" hdf5://home/test_user1/ours --without "$OURS_WITHOUT"
    "$python" "$here/summary.py" hdf5://home/test_user1/ours
    # Chunks that stay in the native file.
    compare "$work/source.h5" hdf5://home/test_user1/linked --without "$OURS_WITHOUT"
    hsload "$work/for_hsload.h5" /home/test_user1/theirs
    # What h5live has beside a domain (its lease, its lock) is no domain.
    "$python" "$here/listed.py" /home/test_user1/ linked ours theirs
    "$python" "$here/edit.py" /home/test_user1/ours
    stop
    "$h5live" copy --quiet --force "$(domain theirs)" "$work/theirs.h5"
    compare "$work/for_hsload.h5" "$work/theirs.h5" --without "$THEIRS_WITHOUT"
    "$h5live" check --data "$(domain theirs)"
    "$h5live" check --data "$(domain ours)"
    # Edits in turn: HSDS has edited what we wrote, and we edit that.
    "$h5live" copy --quiet --force "$(domain ours)" "$work/edited.h5"
    "$python" "$here/edited.py" "$work/edited.h5" 1
    printf 'v\n7\n8\n' | "$h5live" record "$(domain ours)" recorded
    start
    "$python" "$here/edited.py" hdf5://home/test_user1/ours 2
    stop
    echo "HSDS reads what h5live writes, and h5live what HSDS has written: on $storage"
}

"$python" "$here/source.py" "$work/source.h5"
"$python" "$here/source.py" "$work/for_hsload.h5" --for-hsload
both_ways "$work/root"
# A store that was left out is listed, too, with the feature that it needs.
missing=$("$h5live" stores | sed -n -E 's/^(hsds\+s3|s3): needs the feature (.*)$/\2/p' | paste -sd ' ')
if [ -n "$missing" ]; then
    echo "skipped: HSDS on an S3 server; h5live is built without $missing"
elif ! "$python_of_s3" -c 'import moto.server' 2> /dev/null; then
    echo "skipped: $python_of_s3 has no moto[server] (tests/requirements.txt)"
else
    export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
    "$python_of_s3" "$here/s3_server.py" bucket > "$work/url" 2> "$work/s3.log" &
    server=$!
    until [ -s "$work/url" ]; do
        kill -0 "$server" 2> /dev/null || { echo "the S3 server does not start: $(tail -n 3 "$work/s3.log")" >&2; exit 1; }
        sleep 0.1
    done
    both_ways "$(cat "$work/url")"
fi
