#!/usr/bin/env bash
# Starts HSDS 1.0.2 (PyPI) on a folder of buckets, or on an S3 server. It listens on sockets of the file system only.
# usage: start.sh VENV ROOT|URL BUCKET SOCKETS; then `. SOCKETS/env.sh`
set -euo pipefail
venv=$1 storage=$2 bucket=$3 sockets=$(realpath "$4")
rm -f "$sockets"/*.sock "$sockets"/*.log "$sockets"/launcher.out
# The nodes read the bucket from the environment, not from the launcher's option.
export BUCKET_NAME=$bucket PYTHONUNBUFFERED=1 PATH=$venv/bin:$PATH
place=()
case $storage in
    http:*) export AWS_S3_GATEWAY=$storage AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test ;;
    *) place=(--root_dir "$(realpath "$storage")") ;;
esac
cd "$sockets"
setsid "$venv/bin/hsds" "${place[@]}" --bucket_name "$bucket" --socket_dir "$sockets" \
    --hs_username test_user1 --hs_password test --count 1 --loglevel ERROR > launcher.out 2>&1 < /dev/null &
echo $! > pid
for _ in $(seq 240); do
    grep -q READY launcher.out && break
    kill -0 "$(cat pid)" 2> /dev/null || break
    sleep 0.25
done
grep -q READY launcher.out || { echo "HSDS does not start: $(tail -n 3 launcher.out)" >&2; exit 1; }
cat > env.sh <<EOF
export HS_ENDPOINT=http+unix://${sockets//\//%2F}%2Fsn_1.sock HS_USERNAME=test_user1 HS_PASSWORD=test
export HS_BUCKET=$bucket BUCKET_NAME=$bucket PATH=$venv/bin:\$PATH
EOF
