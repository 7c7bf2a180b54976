# Makes the project's environment: sourced by the scripts beside it, after `set -euo pipefail`.
# Everything here may be run again: what is there already is left as it is.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
VENV="$ROOT/.venv"
TEST_EXTRAS=local,wandb,tensorboard,figures,pages,test

say() { printf '== %s\n' "$*" >&2; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The first Python 3.11 or 3.12 among $PYTHON and the usual names.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' \
            2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "MILO needs Python 3.11 or 3.12; found $(python3 --version 2>&1 || true)." \
        "Install one of them, or name it: PYTHON=/path/to/python3.12 $0"
}

# System packages, where they are missing and we may install them.
install_system_packages() {
    local python=$1 missing=()
    command -v bwrap >/dev/null || missing+=(bubblewrap)
    command -v git >/dev/null || missing+=(git)
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing ${missing[*]}"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${missing[@]}" >/dev/null
        return
    fi
    case " ${missing[*]} " in
        *" git "* | *" python3-venv "*)
            fail "these system packages are missing: ${missing[*]}" \
                "(on Debian: sudo apt-get install ${missing[*]})"
            ;;
    esac
    say "bubblewrap is missing: harnesses will run in a weaker sandbox" \
        "(on Debian: sudo apt-get install bubblewrap)"
}

# What the environment was made of; it is made anew where this changes.
fingerprint() {
    local python=$1 extras=$2
    { "$python" --version && echo "$python $extras" && cat "$ROOT/pyproject.toml" \
        "$ROOT/scripts/constraints.txt"; } | sha256sum | cut -d' ' -f1
}

# make_environment EXTRAS: .venv with MILO and these extras, at the versions that are tested.
make_environment() {
    local extras=$1 python wanted stamp
    python=$(find_python)
    install_system_packages "$python"
    wanted=$(fingerprint "$python" "$extras")
    stamp="$VENV/.milo-$extras"
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        return
    fi
    if [ ! -x "$VENV/bin/python" ] || ! "$VENV/bin/python" -c 'import pip' 2>/dev/null ||
        [ "$("$VENV/bin/python" --version)" != "$("$python" --version)" ]; then
        say "making .venv with $("$python" --version)"
        "$python" -m venv --clear "$VENV"
    fi
    say "installing MILO and what it needs into .venv (about 1.3 GB, a minute or two)"
    "$VENV/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        -c "$ROOT/scripts/constraints.txt" -e "$ROOT[$extras]"
    echo "$wanted" >"$stamp"
}
