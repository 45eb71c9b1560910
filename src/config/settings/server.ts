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
  whole('port', { min: 0, max: 65_535, fallback: 8080, doc: 'The port to listen on; 0 takes a free one.' }),
  text('host', {
    must: 'an IP address or a host name',
    pattern: /^[A-Za-z0-9.:_-]+$/,
    fallback: '127.0.0.1',
    doc: 'The address to listen on. Any but loopback needs `tls` or an https `publicUrl`.',
  }),
  list('trustedProxies', {
    must: 'a list of addresses like 127.0.0.1 or 10.1.0.0/16',
    item: isAddressRange,
    doc: 'The proxies before this server, which tell in `X-Forwarded-For` for whom they ask. Without them attempts to sign in through a proxy count as one visitor’s.',
  }),
  address('publicUrl', {
    must: 'an https address, or an http one on loopback',
    schemes: ['http', 'https'],
    doc: 'How callers reach this server, where that is not the address it listens on: the links to files begin with it.',
  }),
  filePath('tls.cert', { must: 'the path of a PEM file', doc: 'The server’s own TLS: its certificate chain.' }),
  filePath('tls.key', { must: 'the path of a PEM file', doc: 'The server’s own TLS: its private key.' }),
  filePath('dataDir', {
    must: 'the path of a directory',
    fallback: './data',
    doc: 'Where everything is kept; made where it is missing.',
  }),
  filePath('skillsDir', {
    must: 'the path of a directory',
    doc: 'The operator’s skills: each folder in it with a `SKILL.md` is there for every project. Default: `skills` in `dataDir`, or with Postgres none. Looked at again every few seconds.',
  }),
  address('databaseUrl', {
    must: 'an address like postgres://user@host/name',
    schemes: ['postgres', 'postgresql'],
    secret: true,
    doc: 'Postgres, for several nodes ([postgres.md](postgres.md)); without it SQLite in the data directory. Needs `secret`.',
  }),
  address('databaseListenUrl', {
    must: 'an address like postgres://user@host/name',
    schemes: ['postgres', 'postgresql'],
    secret: true,
    doc: 'The same database without the pooler in between, where `databaseUrl` goes through one that shares connections: nodes wake each other over one connection to it. Without it that is `databaseUrl`.',
  }),
  whole('databasePool', {
    min: 2,
    max: 1000,
    fallback: 10,
    doc: 'Connections to Postgres that this process has at most.',
  }),
  address('blobsUrl', {
    must: 'an address like s3://bucket/prefix or file:///directory',
    schemes: ['s3', 'file'],
    secret: true,
    doc: 'Where files are kept; without it in the data directory. See [Files in a bucket](#files-in-a-bucket).',
  }),
  text('secret', {
    must: 'at least 32 characters',
    pattern: /^.{32,}$/s,
    secret: true,
    doc: 'Key hashes and signatures hang on it; the same on all nodes. Without it one is made, once, in the data directory.',
  }),
  choice('role', {
    values: ['all', 'api', 'worker'],
    fallback: 'all',
    doc: 'What this process does: `api` answers callers and has no sandboxes, `worker` works on interactions and answers no callers. Both need `databaseUrl`.',
  }),
  toggle('demo', {
    fallback: true,
    doc: 'Whether the built-in demo model may stand in where no real model is configured or found.',
  }),
  fraction('leaseS', {
    min: 1,
    max: 3600,
    fallback: 30,
    doc: 'How long a worker that went silent keeps its interaction, seconds.',
  }),
  fraction('drainS', {
    min: 0,
    max: 3600,
    fallback: 20,
    doc: 'How long SIGTERM waits for running interactions before it hands them to the next start, seconds.',
  }),
  choice('log', {
    values: ['debug', 'info', 'warn', 'error', 'silent'],
    fallback: 'info',
    doc: 'The least level that is logged, on stderr: JSON lines, or short ones on a terminal.',
  }),
  whole('workerSlots', {
    min: 1,
    max: 10_000,
    fallback: 64,
    doc: 'Interactions worked on at once, all projects together.',
  }),
]
