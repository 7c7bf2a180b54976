#!/bin/sh
# Judge the folder that the agent left. A checker that a candidate killed counts as a zero; a
# checker that failed by itself leaves no reward, so that it is seen as the verifier's fault.
tests="${MILO_TESTS:-/tests}"
logs="${MILO_LOGS:-/logs}"
workspace="${MILO_WORKSPACE:-/workspace}"
mkdir -p "$logs/verifier"
rm -rf "$logs/verifier/reward.json" "$logs/verifier/reward.txt"
python3 -I -S "$tests/check.py" "$tests" "$logs/verifier" "$workspace"
code=$?
if [ "$code" -gt 128 ]; then
    rm -rf "$logs/verifier/reward.json"
    printf '{"reward": 0.0}\n' >"$logs/verifier/reward.json"
    printf 'the checker was killed while it ran the code\n' >"$logs/verifier/report.txt"
fi
exit "$code"
