#!/usr/bin/env bash
# need.sh PROGRAM...: installs Debian packages for the named programs where it can, otherwise names the line to run and exits 1.
set -u
declare -A package=([bwrap]=bubblewrap [rg]=ripgrep [chromium]=chromium [gcc]=gcc [node]=nodejs [npm]=npm [python3]=python3)
missing=()
for program in "$@"; do
  command -v "$program" >/dev/null 2>&1 || missing+=("${package[$program]:-$program}")
done
[ ${#missing[@]} -eq 0 ] && exit 0
line="apt-get install -y --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null 2>&1; then
  echo "Missing: ${missing[*]}. Install them with your system's packages, then run this again." >&2
  exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "Missing: ${missing[*]}. Run this, then try again:  sudo $line" >&2
    exit 1
  fi
  sudo="sudo -n"
fi
log=$(mktemp)
if $sudo env DEBIAN_FRONTEND=noninteractive bash -c "apt-get update -qq && $line" >"$log" 2>&1; then
  rm -f "$log"
  exit 0
fi
tail -n 5 "$log" >&2
echo "Could not install ${missing[*]}. Run this yourself:  sudo $line" >&2
exit 1
