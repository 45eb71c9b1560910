/**
 * Opens the sandboxes of a data directory: connects to its sandbox host, and starts the host if there is none. Several
 * servers can share one host. A restarted server finds the sandboxes of the server before it.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connection, openConnection } from './connection.ts'
import type { Log } from './driver.ts'
import { type DriverChoice, driverChoice } from './drivers.ts'
import { fingerprint, hostFiles, killHost, startHost } from './host-process.ts'
import { SandboxError, type Sandboxes, type SandboxLimits } from './port.ts'
import { isLockHeld } from './process-lock.ts'
import type { HostSettings } from './protocol.ts'
import { createRemoteSandbox } from './remote-sandbox.ts'

export interface SandboxOptions extends DriverChoice {
  readonly dataDir: string
  /** Limits of warm sandboxes. A spec with other limits gets a cold one. */
  readonly limits: SandboxLimits
  /** Sandboxes kept ready, each used once. */
  readonly pool: number
  /** Sandboxes in use at once. */
  readonly maxOpen: number
  readonly log: Log
  /** Called when a host is being started. */
  readonly onStarting?: () => void
  /** Milliseconds that `open` waits while `maxOpen` sandboxes are in use. Default 15,000. */
  readonly waitMs?: number
  /** Milliseconds after which a host without a server ends. Default 60,000. */
  readonly graceMs?: number
  /** Milliseconds without an answer after which a host is killed and replaced. Default 30,000. */
  readonly hangMs?: number
}

const CONNECT_WITHIN_MS = 60_000
const RETRY_MS = 50
const HELLO_WITHIN_MS = 10_000

/** Throws an Error with one sentence, cause and remedy, if no sandbox can be made on this machine. */
export async function openSandboxes(options: SandboxOptions): Promise<Sandboxes> {
  const { log } = options
  const choice = driverChoice(options)
  const places = hostFiles(options.dataDir)
  const settings: HostSettings = {
    limits: options.limits,
    pool: options.pool,
    maxOpen: options.maxOpen,
    waitMs: options.waitMs ?? 15_000,
    graceMs: options.graceMs ?? 60_000,
  }
  const { hangMs = 30_000 } = options
  const print = fingerprint(choice)
  let closed = false
  let current: Promise<Connection> | undefined

  function endHung(link: Connection): void {
    log.error({}, 'the sandbox host does not answer: killing it and its sandboxes')
    killHost(places)
    link.close() // pending requests fail as lost
  }

  /** Sends heartbeats to the host. */
  function watch(link: Connection): void {
    let asked = false
    const beat = setInterval(async () => {
      if (asked) return
      asked = true
      const sign = link.start({ op: 'living' }).done.then(
        () => true,
        () => true,
      )
      if (!(await Promise.race([sign, sleep(hangMs, false, { ref: false })])) && link.alive()) endHung(link)
      asked = false
    }, hangMs / 3).unref()
    void link.closed.then(() => clearInterval(beat))
  }

  /** Greets the host. Undefined if it ran other settings or another program, or hung, and has ended now. */
  async function greet(connection: Connection): Promise<Connection | undefined> {
    const hello = connection.start({ op: 'hello', fingerprint: print, settings }).done
    const answer = await Promise.race([hello, sleep(Math.min(hangMs, HELLO_WITHIN_MS), undefined, { ref: false })])
    if (!answer) {
      endHung(connection)
      return undefined
    }
    const { welcome, others = 0 } = answer
    if (welcome) return connection
    if (others > 0) {
      connection.close()
      throw new Error(
        `Another Errand, of another version or with other sandbox settings, uses the data directory ${options.dataDir}: stop it first.`,
      )
    }
    log.info({}, 'the running sandbox host has another version or other settings: replacing it')
    await connection.start({ op: 'close' }).done
    await connection.closed
    return undefined
  }

  async function connectOrStart(): Promise<Connection> {
    const until = Date.now() + CONNECT_WITHIN_MS
    for (;;) {
      try {
        const connection = await greet(await openConnection(places.socketPath))
        if (connection) return connection
      } catch (error) {
        const absent = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '')
        const ending = error instanceof SandboxError && error.code === 'lost'
        if (!absent && !ending) throw error
        if (await isLockHeld(places.lock)) await sleep(RETRY_MS)
        else {
          const starting = startHost({ ...places, fingerprint: print, ...choice, settings })
          options.onStarting?.()
          const report = await starting
          if (report.outcome === 'failed') throw new Error(report.message)
        }
      }
      if (Date.now() > until)
        throw new Error(`The sandbox host does not answer at ${places.socketPath}; see ${places.logFile}.`)
    }
  }

  async function connection(): Promise<Connection> {
    if (closed) throw new SandboxError('unavailable', 'The sandboxes are closed: the server is stopping.')
    current ??= connectOrStart().then((opened) => {
      watch(opened)
      void opened.closed.then(() => {
        if (!closed) log.warn({}, 'the connection to the sandbox host is lost')
        current = undefined
      })
      return opened
    })
    try {
      return await current
    } catch (error) {
      current = undefined
      throw error
    }
  }

  async function connectionOrUnavailable(): Promise<Connection> {
    try {
      return await connection()
    } catch (error) {
      if (error instanceof SandboxError) throw error
      throw new SandboxError('unavailable', (error as Error).message, error)
    }
  }

  await connection()

  return {
    async open(spec, signal) {
      if (signal.aborted) throw new SandboxError('unavailable', 'The wait for a sandbox was cancelled.')
      const link = await connectionOrUnavailable()
      const call = link.start({ op: 'open', spec })
      const abort = () => call.send({ op: 'kill' })
      signal.addEventListener('abort', abort)
      try {
        const { fresh = true } = await call.done
        const { interactionId, name = 'main', epoch } = spec
        return createRemoteSandbox(link, { sandbox: interactionId, name, epoch }, fresh)
      } catch (error) {
        if (error instanceof SandboxError && error.code === 'lost')
          throw new SandboxError('unavailable', error.message, error)
        throw error
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },
    async destroy(interactionId) {
      await (await connectionOrUnavailable()).start({ op: 'destroy', sandbox: interactionId }).done
    },
    async living() {
      return (await (await connectionOrUnavailable()).start({ op: 'living' }).done).living ?? []
    },
    async counts() {
      const { living = [], warm = 0 } = await (await connectionOrUnavailable()).start({ op: 'living' }).done
      return { open: living.length, warm }
    },
    async facts() {
      return (await (await connectionOrUnavailable()).start({ op: 'facts' }).done).facts!
    },
    async close() {
      if (closed) return
      closed = true
      const link = await current?.catch(() => undefined)
      if (!link?.alive()) return
      const { living = [] } = await link.start({ op: 'living' }).done.catch(() => ({ living: [] }))
      // The next worker of these runs finds their sandboxes. If none comes, the host ends by itself.
      if (living.length > 0) return link.close()
      const { others = 0 } = await link.start({ op: 'close' }).done.catch(() => ({ others: 0 }))
      if (others > 0) link.close()
      await link.closed // the host has ended with all its sandboxes
    },
  }
}
