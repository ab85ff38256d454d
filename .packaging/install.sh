#!/bin/sh
# Installs Postrider on a Linux distribution for which there is no package:
#
#   ./install.sh [--prefix /usr/local]            installs, or upgrades an existing installation
#   ./install.sh --remove [--purge]               removes the program; with --purge also configuration, data and user
#
# Needs glibc 2.36 or newer, systemd 252 or newer, and util-linux.
set -eu

prefix=/usr/local
action=install
purge=no
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?"--prefix needs a directory"}; shift ;;
    --remove) action=remove ;;
    --purge) purge=yes ;;
    *) echo "install.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done

if [ "$(id -u)" != 0 ]; then
  echo 'install.sh: must be run as root' >&2
  exit 1
fi
here=$(dirname -- "$(readlink -f -- "$0")")
units=/etc/systemd/system
unit_files='postrider.service postrider@.service system-postrider.slice'
has_systemd() { [ -d /run/systemd/system ]; }

files='share/man/man1/postrider.1.gz
share/man/man5/postrider.toml.5.gz
share/bash-completion/completions/postrider
share/zsh/vendor-completions/_postrider
share/fish/vendor_completions.d/postrider.fish'

if [ "$action" = remove ]; then
  if has_systemd; then
    systemctl stop 'postrider@*.service' || true
    systemctl disable --now postrider.service || true
  fi
  rm -rf "$prefix/lib/postrider" "$prefix/share/doc/postrider" "$prefix/bin/postrider"
  for file in $unit_files; do rm -f "$units/$file"; done
  for file in $files; do rm -f "$prefix/$file"; done
  if has_systemd; then systemctl daemon-reload; fi
  if [ "$purge" = yes ]; then
    for directory in /etc/postrider-*; do
      name=${directory#/etc/}
      # Each instance has a user of its name. Without one, the directory belongs to something else.
      id -u "$name" >/dev/null 2>&1 || continue
      unit=postrider@${name#postrider-}.service
      rm -rf "$directory" "/var/lib/$name" "$units/$unit.d" "$units/multi-user.target.wants/$unit"
      userdel "$name"
      if getent group "$name" >/dev/null; then groupdel "$name"; fi
    done
    rm -rf "$units/postrider@.service.d" "$units/system-postrider.slice.d"
    rm -rf /etc/postrider /var/lib/postrider "$units/postrider.service.d"
    if id -u postrider >/dev/null 2>&1; then userdel postrider; fi
    if getent group postrider >/dev/null; then groupdel postrider; fi
  fi
  exit
fi

if ! id -u postrider >/dev/null 2>&1; then
  useradd --system --user-group --home-dir /var/lib/postrider --no-create-home \
    --shell "$(command -v nologin || echo /bin/false)" --comment 'Postrider mail platform' postrider
fi
if [ ! -d /etc/postrider ]; then install -d -o root -g postrider -m 0750 /etc/postrider; fi
if [ ! -d /var/lib/postrider ]; then install -d -o postrider -g postrider -m 0700 /var/lib/postrider; fi

# The new program is complete before it replaces the old one.
install -d "$prefix/bin" "$prefix/lib" "$prefix/share/doc"
rm -rf "$prefix/lib/postrider.new" "$prefix/lib/postrider.old"
cp -R "$here/lib/postrider" "$prefix/lib/postrider.new"
chown -R 0:0 "$prefix/lib/postrider.new"
if [ -d "$prefix/lib/postrider" ]; then mv "$prefix/lib/postrider" "$prefix/lib/postrider.old"; fi
mv "$prefix/lib/postrider.new" "$prefix/lib/postrider"
rm -rf "$prefix/lib/postrider.old" "$prefix/share/doc/postrider"
cp -R "$here/share/doc/postrider" "$prefix/share/doc/postrider"
install -m 0755 "$here/bin/postrider" "$prefix/bin/postrider"
for file in $files; do install -D -m 0644 "$here/$file" "$prefix/$file"; done

install -d "$units"
for file in $unit_files; do
  sed "s|/usr/bin/postrider|$prefix/bin/postrider|" "$here/systemd/$file" >"$units/$file"
  chmod 0644 "$units/$file"
done
if has_systemd; then
  systemctl daemon-reload
  systemctl enable postrider.service
  systemctl try-restart postrider.service 'postrider@*.service'
fi
if [ ! -e /etc/postrider/postrider.toml ]; then
  echo 'postrider: not configured yet. Set it up with: postrider init'
fi
