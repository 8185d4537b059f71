#!/usr/bin/env bash
# Installs what is missing of the package groups named on the command line: tools/install_packages.sh build test
# Asking dpkg first makes this cost milliseconds when all is there, so that every ./dev command may begin with it.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t wanted < <(awk -v groups=" $* " '!/^#/ && NF && index(groups, " " $2 " ") { print $1 }' tools/packages.txt)

if ! command -v dpkg-query >/dev/null; then
  echo "packages: this is not a Debian system; the build needs the equivalents of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
for package in "${wanted[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi

give_up() {
  echo "packages: $1" >&2
  echo "packages: install these, then run the same command again: ${missing[*]}" >&2
  exit 1
}

as_root=()
if ((EUID != 0)); then
  if sudo -n true 2>/dev/null; then as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
  else give_up "installing needs root, and sudo asks for a password or is not there"; fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

echo "packages: apt-get update"
"${as_root[@]}" apt-get update -q </dev/null >"$log" 2>&1 ||
  { tail -n 5 "$log" >&2; give_up "apt-get update failed; is the network there?"; }
echo "packages: apt-get install ${missing[*]}"
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1 ||
  { tail -n 15 "$log" >&2; give_up "apt-get install failed, its last words are above"; }
