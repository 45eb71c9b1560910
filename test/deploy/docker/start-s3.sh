#!/bin/sh
# `versitygw --port :7070 posix /data`, whose buckets are the directories there, as s3rver understands it.
port=${2#:} place=$4
shift 4
for bucket in "$place"/*/; do set -- "$@" --configure-bucket "$(basename "$bucket")"; done
exec node --openssl-legacy-provider /opt/s3/node_modules/s3rver/bin/s3rver.js -d "$place" -a 0.0.0.0 -p "$port" --no-vhost-buckets "$@"
