#!/bin/sh
# Judge the construction that the optimizer left.
tests="${MILO_TESTS:-/tests}"
logs="${MILO_LOGS:-/logs}"
workspace="${MILO_WORKSPACE:-/workspace}"
mkdir -p "$logs/verifier"
rm -rf "$logs/verifier/reward.json" "$logs/verifier/reward.txt"
exec python3 -I "$tests/check.py" "$tests" "$logs/verifier" "$workspace"
