/** The server itself: addresses, storage, and how this process works. */
import { isIP } from 'node:net'
import { address, choice, filePath, fraction, list, type Setting, text, toggle, whole } from '../setting.ts'

/** `10.1.0.0/16`, `127.0.0.1:9000`, `[::1]:9000`, `10.1.2.3`. */
function isAddressRange(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

export const SERVER_SETTINGS: readonly Setting[] = [
  whole('port', { min: 0, max: 65_535, fallback: 8080, doc: 'Port to listen on. 0 selects a free port.' }),
  text('host', {
    must: 'an IP address or a host name',
    pattern: /^[A-Za-z0-9.:_-]+$/,
    fallback: '127.0.0.1',
    doc: 'Address to listen on. An address other than loopback requires `tls` or a `publicUrl` with https.',
  }),
  list('trustedProxies', {
    must: 'a list of addresses like 127.0.0.1 or 10.1.0.0/16',
    item: isAddressRange,
    doc: 'Reverse proxies whose `X-Forwarded-For` header is trusted. If a proxy is missing here, sign-in attempts through it are limited together, as those of one client.',
  }),
  address('publicUrl', {
    must: 'an https address, or an http one on loopback',
    schemes: ['http', 'https'],
    doc: 'Base URL at which callers reach this server, if it differs from the listening address. Links to files begin with it.',
  }),
  filePath('tls.cert', { must: 'the path of a PEM file', doc: 'Certificate chain for TLS without a proxy.' }),
  filePath('tls.key', { must: 'the path of a PEM file', doc: 'Private key for TLS without a proxy.' }),
  filePath('dataDir', {
    must: 'the path of a directory',
    fallback: './data',
    doc: 'Directory of all data. Created if it is missing.',
  }),
  filePath('skillsDir', {
    must: 'the path of a directory',
    doc: 'Directory of the operator’s skills. Each folder in it with a `SKILL.md` is available to every project. Default: `skills` in `dataDir`; with Postgres, none. Changes take effect within seconds.',
  }),
  address('databaseUrl', {
    must: 'an address like postgres://user@host/name',
    schemes: ['postgres', 'postgresql'],
    secret: true,
    doc: 'Postgres database, for several nodes ([postgres.md](postgres.md)). Requires `secret`. Default: SQLite in the data directory.',
  }),
  address('databaseListenUrl', {
    must: 'an address like postgres://user@host/name',
    schemes: ['postgres', 'postgresql'],
    secret: true,
    doc: 'Address of the same database without a connection pooler, for `LISTEN`: each node keeps one connection to it. Set it if `databaseUrl` leads to a pooler that shares connections. Default: `databaseUrl`.',
  }),
  whole('databasePool', {
    min: 2,
    max: 1000,
    fallback: 10,
    doc: 'Maximum number of connections of this process to Postgres.',
  }),
  address('blobsUrl', {
    must: 'an address like s3://bucket/prefix or file:///directory',
    schemes: ['s3', 'file'],
    secret: true,
    doc: 'Storage for files. Default: the data directory. See [Files in a bucket](#files-in-a-bucket).',
  }),
  text('secret', {
    must: 'at least 32 characters',
    pattern: /^.{32,}$/s,
    secret: true,
    doc: 'Secret for key hashes and signatures. It must be the same on all nodes. Default: generated at the first start and stored in the data directory.',
  }),
  choice('role', {
    values: ['all', 'api', 'worker'],
    fallback: 'all',
    doc: 'Role of this process: `api` serves callers and has no sandboxes; `worker` executes interactions and serves no callers. Both require `databaseUrl`.',
  }),
  toggle('demo', {
    fallback: true,
    doc: 'Whether the built-in demo model is used if no real model is configured or found.',
  }),
  fraction('leaseS', {
    min: 1,
    max: 3600,
    fallback: 30,
    doc: 'Lease of a worker on its interaction, in seconds. Another worker takes over the interaction if the lease is not renewed.',
  }),
  fraction('drainS', {
    min: 0,
    max: 3600,
    fallback: 20,
    doc: 'Time that running interactions have to end after SIGTERM, in seconds. Those that still run then are requeued for the next start or another node.',
  }),
  choice('log', {
    values: ['debug', 'info', 'warn', 'error', 'silent'],
    fallback: 'info',
    doc: 'Minimum level of log lines. They are written to stderr, as JSON or, on a terminal, as short text.',
  }),
  whole('workerSlots', {
    min: 1,
    max: 10_000,
    fallback: 64,
    doc: 'Number of interactions that this process executes at the same time, over all projects.',
  }),
]
