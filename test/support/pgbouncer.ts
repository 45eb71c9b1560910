/**
 * A PgBouncer in transaction mode in front of a test's cluster: a pooler as operators use it, with few database
 * connections.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROGRAM = '/usr/sbin/pgbouncer'
const PORT = 6_432
const NOBODY = 65_534
/** PgBouncer refuses to run as root. */
const user = process.getuid!() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

/**
 * False if PgBouncer is not installed: its tests are skipped. In CI always true, so that they are never skipped there.
 */
export const hasPgbouncer = process.env.CI !== undefined || existsSync(PROGRAM)

export interface Pooler {
  /** The address of a database, through the pooler. */
  through(url: string): string
  stop(): Promise<void>
}

/** Starts PgBouncer. `directory` has the socket of Postgres. `connections`: maximum number for each database. */
export async function startPgbouncer(directory: string, connections: number): Promise<Pooler> {
  const place = mkdtempSync(join(tmpdir(), 'errand-pgbouncer-'))
  if (user.uid !== undefined) chownSync(place, user.uid, user.gid)
  const users = join(place, 'users.txt')
  writeFileSync(users, '"errand" ""\n', { mode: 0o644 })
  const config = join(place, 'pgbouncer.ini')
  const settings = [
    ...['[databases]', `* = host=${directory}`],
    ...['[pgbouncer]', 'listen_addr =', `listen_port = ${PORT}`, `unix_socket_dir = ${place}`],
    ...['auth_type = trust', `auth_file = ${users}`, 'pool_mode = transaction', `default_pool_size = ${connections}`],
  ]
  writeFileSync(config, `${settings.join('\n')}\n`, { mode: 0o644 })
  const child = spawn(PROGRAM, [config], { ...user, cwd: place, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  const up = Promise.withResolvers<void>()
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
    if (said.includes('process up')) up.resolve()
  })
  child.once('error', up.reject)
  child.once('exit', () => up.reject(new Error(`PgBouncer did not start: ${said}`)))
  await up.promise
  return {
    through: (url) => `postgres://${new URL(url).pathname}?host=${place}&port=${PORT}&user=errand`,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGINT')
      await exited
      rmSync(place, { recursive: true })
    },
  }
}
