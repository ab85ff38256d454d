#!/bin/sh
# Runs Postrider with the Node of its package. root becomes the user postrider, who owns the data: files that another
# user creates in it could not be opened by the daemon. Only `init` stays root: it writes /etc/postrider, and gives the
# data to the user. A configuration in the current directory is not used by root: the directory may belong to someone
# else.
program=$(readlink -f -- "$0")
library=${program%/bin/postrider}/lib/postrider
command=$1
case $command in
  --config) command=$3 ;;
  --config=*) command=$2 ;;
esac
set -- "$library/bin/node" --enable-source-maps "$library/dist/main.js" "$@"
if [ "$(id -u)" = 0 ] && id -u postrider >/dev/null 2>&1; then
  export POSTRIDER_CONFIG="${POSTRIDER_CONFIG:-/etc/postrider/postrider.toml}"
  [ "$command" = init ] || exec setpriv --reuid postrider --regid postrider --init-groups -- "$@"
fi
exec "$@"
