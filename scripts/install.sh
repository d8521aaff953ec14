#!/bin/sh
# Installs a release of thole for this user. Needs no root.
#
#   curl -fsSL https://raw.githubusercontent.com/tholehq/thole/main/scripts/install.sh | sh
#   sh scripts/install.sh [VERSION]           for example v0.2.0; the newest without it
#
#   THOLE_INSTALL_DIR   where the program goes, default ~/.local/bin
#   THOLE_RELEASES      where releases are, default the project's page
#
# What was downloaded is compared with the release's checksums before anything is
# unpacked, and the program moves to its place in one step: an install that fails
# leaves what was there.
set -eu

main() {
  releases=${THOLE_RELEASES:-https://github.com/tholehq/thole/releases}
  dir=${THOLE_INSTALL_DIR:-$HOME/.local/bin}

  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "no release for $(uname -s): build it from source with go install" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "no release for $(uname -m): build it from source with go install" ;;
  esac

  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  trap 'exit 1' HUP INT TERM

  if [ $# -gt 0 ]; then
    base=$releases/download/$1
  else
    base=$releases/latest/download
  fi
  get "$base/checksums.txt" "$tmp/checksums.txt"
  # The version is in the archive's name; one release has one archive for each system.
  file=$(awk -v end="_${os}_${arch}.tar.gz" '
    $2 ~ /^thole_[A-Za-z0-9.+~-]+_[a-z0-9]+_[a-z0-9]+\.tar\.gz$/ && substr($2, length($2) - length(end) + 1) == end { print $2; n++ }
    END { exit n != 1 }' "$tmp/checksums.txt") || fail "the release has not exactly one archive for $os/$arch"
  get "$base/$file" "$tmp/$file"

  want=$(awk -v f="$file" '$2 == f { print $1 }' "$tmp/checksums.txt")
  got=$(sha256 "$tmp/$file")
  [ "$want" = "$got" ] || fail "checksum of $file is $got, the release says $want: nothing was installed"

  tar -xzf "$tmp/$file" -C "$tmp" thole
  [ -f "$tmp/thole" ] && [ ! -h "$tmp/thole" ] || fail "$file holds no program"
  chmod 0755 "$tmp/thole"
  version=$("$tmp/thole" --version) || fail "the program does not run here"

  mkdir -p "$dir"
  cp "$tmp/thole" "$dir/.thole.$$"
  mv -f "$dir/.thole.$$" "$dir/thole"
  echo "installed $version at $dir/thole"
  case :$PATH: in
    *:"$dir":*) ;;
    *) echo "add it to your PATH: export PATH=\"$dir:\$PATH\"" ;;
  esac
}

get() { # URL FILE
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --retry 2 -o "$2" "$1" || fail "cannot download $1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1" || fail "cannot download $1"
  else
    fail "neither curl nor wget is installed"
  fi
}

sha256() { # FILE
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    fail "neither sha256sum nor shasum is installed: the download cannot be verified"
  fi
}

fail() {
  echo "install: $*" >&2
  exit 1
}

main "$@" # last, so that half a script does nothing
