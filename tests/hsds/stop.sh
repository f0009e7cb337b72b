#!/usr/bin/env bash
# Stops what start.sh has started: the nodes first, which write what they hold, then the launcher.
# usage: stop.sh SOCKETS
set -euo pipefail
launcher=$(cat "$1/pid")
nodes=$(ps -o pid= --ppid "$launcher" || true)
for node in $nodes; do kill -TERM "$node" 2> /dev/null || true; done
for node in $nodes; do
    for _ in $(seq 120); do kill -0 "$node" 2> /dev/null || break; sleep 0.25; done
done
kill -TERM "$launcher" 2> /dev/null || true
for _ in $(seq 40); do kill -0 "$launcher" 2> /dev/null || break; sleep 0.25; done
kill -KILL "$launcher" 2> /dev/null || true
