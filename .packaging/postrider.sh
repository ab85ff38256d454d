#!/bin/sh
# Runs Postrider with the Node of its package. When root runs it, it changes to the user postrider, who owns the data: the
# daemon could not open files that another user creates there. Only `init` continues as root: it writes /etc/postrider, and
# changes the owner of the data. root does not use a configuration in the current directory, which may belong to another
# user.
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
