#!/usr/bin/env bash
# ./dev build sdk: the Python packages of sdk/python, a wheel and a source distribution, into build/sdk, or into the
# folder that is named. They are made from a copy with what only a package needs, so that nothing is written into the
# sources; the same sources give the same wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/sdk}
tools/install_packages.sh sdk

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -R sdk/python/. "$stage"
cp LICENSE "$stage"
find "$stage" -name __pycache__ -prune -exec rm -rf {} +
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct -- sdk/python 2>/dev/null || true)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1704067200}
find "$stage" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
rm -f "$out"/pai[_-]aimaster-*
if ! /usr/bin/python3 -m build --no-isolation --outdir "$out" "$stage" >"$stage/log" 2>&1; then
  tail -n 30 "$stage/log" >&2
  echo "build_sdk: making the packages failed; the last words are above" >&2
  exit 1
fi
echo "packages are in $out:"
ls "$out"
