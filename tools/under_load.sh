#!/usr/bin/env bash
# Runs a command while two processes do nothing but use the processor:
#   tools/under_load.sh make test
set -u
export JUPYTER_DIST_PATIENCE=3
loops=()
for _ in 1 2; do
  while :; do :; done &
  loops+=($!)
done
trap 'kill "${loops[@]}"' EXIT
"$@"
