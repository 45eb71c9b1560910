/** Finds the sandbox host of a data directory or starts it. Two servers that start at once never start two hosts. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { compileCacheEnv } from '../runtime/compile-cache.ts'
import type { DriverChoice } from './drivers.ts'
import { type HostOptions, pidFile, type StartReport } from './host/start-options.ts'

/** A unix socket's path has at most 108 bytes, including the terminating zero. */
const MAX_SOCKET_PATH = 100
const START_WITHIN_MS = 30_000

export interface HostFiles {
  readonly stateDir: string
  readonly socketPath: string
  readonly lock: string
  readonly logFile: string
}

/** Creates the private directories. Throws an Error with a sentence if it cannot. */
export function hostFiles(dataDir: string): HostFiles {
  const stateDir = join(dataDir, 'sandbox')
  makePrivate(stateDir)
  const real = realpathSync(stateDir)
  let socketDir = real
  if (Buffer.byteLength(join(real, 'host.sock')) > MAX_SOCKET_PATH) {
    const hash = createHash('sha256').update(real).digest('hex').slice(0, 16)
    socketDir = `/tmp/errand-${process.getuid?.()}-${hash}`
    makePrivate(socketDir)
  }
  return {
    stateDir: real,
    socketPath: join(socketDir, 'host.sock'),
    lock: lockName(join(real, 'lock-name')),
    logFile: join(real, 'host.log'),
  }
}

function makePrivate(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new Error(
      `The sandbox's directory ${path} cannot be created: ${(error as Error).message}. Give ERRAND_DATA_DIR a directory that Errand may write to.`,
    )
  }
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
    throw new Error(
      `${path} must be a directory of Errand's own user with mode 0700; remove it or choose another data directory.`,
    )
  }
}

/** A random name, kept in the data directory: only those who can read it can take the lock. */
function lockName(file: string): string {
  try {
    writeFileSync(file, `errand-host-${randomBytes(16).toString('hex')}`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readFileSync(file, 'utf8')
}

/** Kills a host that hangs. Its sandboxes end with it. */
export function killHost({ stateDir, socketPath }: HostFiles): void {
  try {
    const pid = Number(readFileSync(pidFile(stateDir), 'utf8'))
    // The pid may belong to another process by now.
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(socketPath)) process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/** Hash of this folder's program and of the settings that a running host cannot change. */
export function fingerprint(choice: DriverChoice): string {
  const hash = createHash('sha256').update(JSON.stringify([choice, process.execPath]))
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).sort()
  for (const name of files.filter((file) => ['.ts', '.js', '.py'].includes(extname(file)))) {
    hash.update(readFileSync(join(import.meta.dirname, name)))
  }
  return hash.digest('hex')
}

/** Starts a host that outlives this process. It does not get the server's environment, and so none of its keys. */
export async function startHost(options: HostOptions): Promise<StartReport> {
  const program = join(import.meta.dirname, `host/host-main${extname(import.meta.filename)}`)
  // Files pass through it in short-lived buffers: frequent garbage collection keeps it small.
  const child = spawn(process.execPath, ['--max-semi-space-size=1', program, JSON.stringify(options)], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LANG: 'C.UTF-8',
      ...compileCacheEnv(),
    },
    cwd: '/',
  })
  const said = child.stdio[3] as Readable
  const timer = setTimeout(() => child.kill('SIGKILL'), START_WITHIN_MS)
  try {
    let text = ''
    for await (const piece of said.setEncoding('utf8')) text += piece
    if (text) return JSON.parse(text) as StartReport
    return { outcome: 'failed', message: `The sandbox host ended before it had started; see ${options.logFile}.` }
  } finally {
    clearTimeout(timer)
    child.unref()
  }
}
