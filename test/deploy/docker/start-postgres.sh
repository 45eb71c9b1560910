# What the public image of Postgres does, as far as deploy/compose.yaml needs it: makes the database where there is none,
# with a superuser `postgres` of that password, and serves.
set -e
PGDATA=/var/lib/postgresql/data
as='setpriv --reuid postgres --regid postgres --init-groups'
install -d -m 0700 -o postgres -g postgres "$PGDATA"
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  chown postgres /tmp/password
  $as initdb -D "$PGDATA" -U postgres --auth-local=trust --auth-host=scram-sha-256 --pwfile=/tmp/password --encoding=UTF8 >/dev/null
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
fi
exec $as postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
