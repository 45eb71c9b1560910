/**
 * A Postgres cluster to throw away: made in a temporary directory, reachable by a socket there alone, run as an
 * unprivileged user (it refuses to be root's) and without fsync. Debian's package has its programs outside of PATH.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'

const PACKAGES = '/usr/lib/postgresql'
const NOBODY = 65_534
const user = process.getuid!() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

/** Port in the socket's name. Nothing listens on it. */
const PORT = 5_432
const ADMIN = 'admin'
/** Role as in the documentation: it owns its database and is no superuser. */
const OWNER = 'errand'

export interface Cluster {
  /** Directory of its socket, for `createDatabaseIn` and the proxy. */
  readonly directory: string
  /** The address of a new, empty database, for the role that owns it. */
  createDatabase(settings?: string): Promise<string>
  /** Ends it without a word to anybody, as a power failure does: what had committed is found again at the next start. */
  crash(): Promise<void>
  /** Behind a crash. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** Directory of initdb and postgres, in the newest installed version. Undefined if none is installed. */
export function findPostgres(): string | undefined {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).sort((a, b) => Number(b) - Number(a)) : []
  const places = [...versions.map((version) => join(PACKAGES, version, 'bin')), ...process.env.PATH!.split(':')]
  return places.find((place) => ['initdb', 'postgres'].every((program) => existsSync(join(place, program))))
}

/** With `tcp` it listens on that port of the loopback too. `settings`: more of them, told where its directory is. */
export async function startCluster(
  programs: string,
  more: { readonly tcp?: number; readonly settings?: (dir: string) => string[] } = {},
): Promise<Cluster> {
  const port = more.tcp ?? PORT
  const dir = mkdtempSync(join(tmpdir(), 'errand-pg-'))
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid)
  const data = join(dir, 'data')
  const run = promisify(execFile)
  const initdb = join(programs, 'initdb')
  const version = Number(/\d+/.exec((await run(initdb, ['--version'])).stdout)![0])
  // A language, where this version brings its own: what compares text by it, and not by its bytes, is found out.
  const language = version >= 15 ? ['--locale-provider=icu', '--icu-locale=en-US'] : []
  const flags = [`--username=${ADMIN}`, '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C', ...language]
  await run(initdb, ['-D', data, ...flags], { ...user, cwd: dir })

  const settings = [`listen_addresses=${more.tcp ? '127.0.0.1' : ''}`, `port=${port}`, `unix_socket_directories=${dir}`]
  settings.push('fsync=off', 'deadlock_timeout=20ms')
  settings.push('max_connections=400')
  // Refused statements are what tests are about, and no news.
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

/** The address of a new, empty database in the cluster there, for the role that owns it. */
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

/** Reads its log for as long as it runs: it would stand still before a pipe that is full. */
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
