# Starts Goose with the instructions beside this file, on the task that MILO_TASK names.
set -eu
if [ "${1:-}" = --smoke ]; then
    exec goose --version
fi
export GOOSE_PROVIDER=openai GOOSE_MODEL="$MILO_MODEL" GOOSE_MODE=auto GOOSE_DISABLE_KEYRING=1
export OPENAI_HOST="${OPENAI_BASE_URL%/v1}" OPENAI_BASE_PATH=v1/chat/completions
exec goose run --no-session --quiet --max-turns 60 --with-builtin developer \
    --system "$(cat "$MILO_HARNESS/instructions.md")" -t "$(cat "$MILO_TASK")"
