#!/usr/bin/env bash
# Runs the end-to-end tests as an ordinary user: tests/e2e/run_unprivileged.sh [PYTEST ARGUMENTS…], as root.
#
# The user has a number that no account has, no group besides its own, no capability and no way to get one, no cgroup
# that it may write, a home of its own, and a seccomp filter that refuses ptrace. What needs more is skipped, with its
# reason. AIMASTER_BIN names the programs; AIMASTER_RESULTS, if set, gets the results for machines.
set -euo pipefail
cd "$(dirname "$0")/../.."

user=61234
if ((EUID != 0)); then
  echo "run_unprivileged.sh: only root can become another user" >&2
  exit 2
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/aimaster-user.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/home" "$folder/repo"
chmod 0755 "$folder"
# A copy, since the way to here may be for its owner alone.
cp -r tests examples sdk "$folder/repo"
cp -r "${AIMASTER_BIN:-build/bin}" "$folder/repo/bin"
if [[ -e build-stack-tools/bin/py-spy ]]; then # it is one file
  mkdir -p "$folder/repo/build-stack-tools/bin"
  cp build-stack-tools/bin/py-spy "$folder/repo/build-stack-tools/bin"
fi
chmod -R a+rX "$folder/repo"
cd "$folder/repo"
chown -R $user:$user "$folder"

status=0
env -u XDG_STATE_HOME -u XDG_RUNTIME_DIR -u AIMASTER_HOME HOME="$folder/home" USER=ordinary LOGNAME=ordinary \
  TMPDIR="$folder" PYTHONDONTWRITEBYTECODE=1 AIMASTER_TEST_UNPRIVILEGED=1 \
  AIMASTER_BIN="$PWD/bin" \
  setpriv --reuid $user --regid $user --clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all \
  --no-new-privs \
  /usr/bin/python3 tests/chaos/without_ptrace.py \
  /usr/bin/python3 -m pytest tests/e2e -q -p no:cacheprovider -n "${AIMASTER_TEST_JOBS:-4}" \
  --basetemp "$folder/tests" --junitxml "$folder/results.xml" "$@" || status=$?
if [[ -n ${AIMASTER_RESULTS:-} && -e $folder/results.xml ]]; then
  cp "$folder/results.xml" "$AIMASTER_RESULTS"
fi
exit "$status"
