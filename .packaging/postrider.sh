#!/bin/sh
# Runs Postrider with the Node of its package. When root runs it, it changes to the user who owns the data, because the daemon
# could not open files that another user creates there: postrider, for an instance with the configuration
# /etc/postrider-NAME/postrider.toml the user postrider-NAME. Only `init` continues as root: it writes the configuration, and
# changes the owner of the data. root does not use a configuration in the current directory, which may belong to another user.
program=$(readlink -f -- "$0")
library=${program%/bin/postrider}/lib/postrider
config=${POSTRIDER_CONFIG:-/etc/postrider/postrider.toml}
command=
option=
for word; do
  case $word in --config | --instance) option=$word= && continue ;; esac
  word=$option$word
  option=
  case $word in
    --config=*) config=${word#*=} ;;
    --instance=*) config=/etc/postrider-${word#*=}/postrider.toml ;;
    *) command=${command:-$word} ;;
  esac
done
user=postrider
config=$(readlink -f -- "$config")
case $config in
  /etc/postrider-*/postrider.toml) user=${config#/etc/} && user=${user%%/*} ;;
esac
# Semi-spaces of 8 instead of 16 MB: less memory under load. Heaps below 32 MB are not collected: those of the threads are small,
# and messages of a megabyte would fill them every 50 ms. During the start a larger one at most doubles before it is collected;
# `serve` limits it further afterwards.
set -- --max-semi-space-size=8 --initial-old-space-size=32 --heap-growing-percent=100 "$library/dist/main.js" "$@"
set -- "$library/bin/node" --enable-source-maps "$@"
if [ "$(id -u)" = 0 ] && id -u "$user" >/dev/null 2>&1; then
  export POSTRIDER_CONFIG="${POSTRIDER_CONFIG:-/etc/postrider/postrider.toml}"
  [ "$command" = init ] || exec setpriv --reuid "$user" --regid "$user" --init-groups -- "$@"
fi
exec "$@"
