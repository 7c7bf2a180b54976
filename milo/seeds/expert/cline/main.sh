# Starts Cline on the task that MILO_TASK names, with rules.md before it.
set -eu
program="$MILO_PACKAGES/node_modules/.bin/cline"
if [ "${1:-}" = --smoke ]; then
    exec "$program" --version
fi
left=$((${MILO_DEADLINE%.*} - $(date +%s) - 5))
"$program" auth -p openai -k "$OPENAI_API_KEY" -m "$MILO_MODEL" -b "$OPENAI_BASE_URL"
exec "$program" --json --auto-approve true -c "$PWD" -t "$left" -P openai -m "$MILO_MODEL" \
    "$(cat "$MILO_HARNESS/rules.md" "$MILO_TASK")"
