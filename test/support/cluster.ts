/**
 * A temporary Postgres cluster. It is in a temporary directory, without fsync, reachable only by a socket there, and
 * runs as an unprivileged user because Postgres refuses to run as root. Debian's package installs its programs outside
 * PATH.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'

const PACKAGES = '/usr/lib/postgresql'
const NOBODY = 65_534
/** Data directories of clusters that have not been started. */
const TEMPLATES = resolve(import.meta.dirname, '../../node_modules/.cache/postgres')
const run = promisify(execFile)
const user = process.getuid!() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

/** Port in the name of the socket. Nothing listens on it. */
const PORT = 5_432
const ADMIN = 'admin'
/** The role that the documentation describes: it owns its database and is no superuser. */
const OWNER = 'errand'

export interface Cluster {
  /** Directory of the socket, for `createDatabaseIn` and the proxy. */
  readonly directory: string
  /** Creates an empty database. Returns its address, for the role that owns it. */
  createDatabase(settings?: string): Promise<string>
  /** Kills the cluster without a shutdown, like a power failure. Committed data is there at the next start. */
  crash(): Promise<void>
  /** Starts the cluster again after a crash. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Directory of initdb and postgres in the newest installed version. Undefined if none is installed. */
export function findPostgres(): string | undefined {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).sort((a, b) => Number(b) - Number(a)) : []
  const places = [...versions.map((version) => join(PACKAGES, version, 'bin')), ...process.env.PATH!.split(':')]
  return places.find((place) => ['initdb', 'postgres'].every((program) => existsSync(join(place, program))))
}

/**
 * Starts a cluster. With `tcp`, it also listens on that port of the loopback interface. `settings` returns further
 * settings; it gets the cluster's directory.
 */
export async function startCluster(
  programs: string,
  more: { readonly tcp?: number; readonly settings?: (dir: string) => string[] } = {},
): Promise<Cluster> {
  const port = more.tcp ?? PORT
  const dir = mkdtempSync(join(tmpdir(), 'errand-pg-'))
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid)
  const data = join(dir, 'data')
  await createData(programs, dir, data)

  const settings = [`listen_addresses=${more.tcp ? '127.0.0.1' : ''}`, `port=${port}`, `unix_socket_directories=${dir}`]
  settings.push('fsync=off', 'deadlock_timeout=20ms')
  settings.push('max_connections=400')
  // Tests cause statements that Postgres refuses, so these are not logged.
  settings.push('log_min_messages=log', ...(more.settings?.(dir) ?? []))
  const options = settings.flatMap((setting) => ['-c', setting])
  let server = await launch()

  async function launch(): Promise<ChildProcess> {
    const child = spawn(join(programs, 'postgres'), ['-D', data, ...options], {
      ...user,
      cwd: dir,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await ready(child)
    return child
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const exited = once(server, 'exit')
    server.kill(signal)
    await exited
  }

  await asAdmin(dir, port, `create role ${OWNER} login`)
  return {
    directory: dir,
    createDatabase: (settings) => createDatabaseIn(dir, settings, port),
    crash: () => end('SIGQUIT'),
    async restart() {
      server = await launch()
    },
    async stop() {
      await end('SIGINT')
      rmSync(dir, { recursive: true })
    },
  }
}

/** Creates a cluster's data directory. Copies the one that an earlier test created, which takes a third of the time. */
async function createData(programs: string, dir: string, data: string): Promise<void> {
  const initdb = join(programs, 'initdb')
  const { stdout } = await run(initdb, ['--version'])
  // Version 15 and later: a collation that differs from byte order, so that tests find comparisons that need byte order.
  const language = Number(/\d+/.exec(stdout)![0]) >= 15 ? ['--locale-provider=icu', '--icu-locale=en-US'] : []
  const flags = [`--username=${ADMIN}`, '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C', ...language]
  const key = createHash('sha256').update([stdout, process.getuid!(), ...flags].join('\n'))
  const template = join(TEMPLATES, key.digest('hex').slice(0, 16))
  if (existsSync(template)) {
    await run('cp', ['-a', template, data])
    return
  }
  await run(initdb, ['-D', data, ...flags], { ...user, cwd: dir })
  mkdirSync(TEMPLATES, { recursive: true })
  const copy = `${template}.${randomUUID()}`
  await run('cp', ['-a', data, copy])
  // Fails if another process was faster.
  await run('mv', ['-T', copy, template]).catch(() => rmSync(copy, { recursive: true }))
}

/**
 * Creates an empty database in the cluster with that socket directory. Returns its address, for the role that owns it.
 */
export async function createDatabaseIn(directory: string, settings = "encoding 'UTF8'", port = PORT): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await asAdmin(directory, port, `create database ${name} owner ${OWNER} template template0 ${settings}`)
  return address(directory, port, name, OWNER)
}

async function asAdmin(directory: string, port: number, statement: string): Promise<void> {
  const client = new pg.Client(address(directory, port, 'postgres', ADMIN))
  await client.connect()
  await client.query(statement)
  await client.end()
}

function address(dir: string, port: number, database: string, role: string): string {
  return `postgres:///${database}?host=${dir}&port=${port}&user=${role}`
}

/** Resolves when the server accepts connections. Reads its log until it ends, because a full pipe would block it. */
async function ready(server: ChildProcess): Promise<void> {
  let log = ''
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log += text
    if (log.includes('ready to accept connections')) resolve()
  })
  server.once('error', reject)
  server.once('exit', () => reject(new Error(`Postgres did not start: ${log}`)))
  await promise
}
