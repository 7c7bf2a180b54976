# Starts OpenCode with the configuration in config/, on the task that MILO_TASK names.
set -eu
program="$MILO_PACKAGES/node_modules/.bin/opencode"
place=/tmp/milo-opencode
export XDG_CONFIG_HOME=$place/config XDG_DATA_HOME=$place/data
export XDG_CACHE_HOME=$place/cache XDG_STATE_HOME=$place/state
export OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
mkdir -p "$XDG_CONFIG_HOME/opencode"
cp -R "$MILO_HARNESS/config/." "$XDG_CONFIG_HOME/opencode"
if [ "${1:-}" = --smoke ]; then
    # The merged configuration: what can't be read makes it fail.
    exec "$program" debug config
fi
exec "$program" run --title task -m milo/model "$(cat "$MILO_TASK")"
