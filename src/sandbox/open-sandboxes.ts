/**
 * The way in: sandboxes of this data directory's host, which is started where none is living. Many servers may share one
 * host; a restarted one finds the sandboxes of the one before.
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
  /** Warm sandboxes are made with these; a spec with others gets a cold one. */
  readonly limits: SandboxLimits
  /** Sandboxes kept ready, each used once. */
  readonly pool: number
  /** Sandboxes in use at once. */
  readonly maxOpen: number
  readonly log: Log
  /** A host was not there, and is on its way. */
  readonly onStarting?: () => void
  /** How long `open` waits for room, milliseconds. Default 15,000. */
  readonly waitMs?: number
  /** How long the host lives on with no server, milliseconds. Default 60,000. */
  readonly graceMs?: number
  /** A host that answers nothing for so long is ended and replaced, milliseconds. Default 30,000. */
  readonly hangMs?: number
}

const CONNECT_WITHIN_MS = 60_000
const RETRY_MS = 50
const HELLO_WITHIN_MS = 10_000

/** Throws an Error with one sentence, cause and remedy, where no sandbox can be made on this machine. */
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
    log.error({}, 'the sandbox host does not answer: it is ended, with the sandboxes that it has')
    killHost(places)
    link.close() // what waits for it hears that it is lost
  }

  /** Asks the host now and then for a sign of life. */
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

  /** Says hello; undefined where the host there is another's or hangs, and has ended for us. */
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
    log.info({}, 'the sandbox host that is running has another version or other settings: it is replaced')
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
      // Handed over: whoever takes those runs up finds their sandboxes. The host ends by itself where nobody comes.
      if (living.length > 0) return link.close()
      const { others = 0 } = await link.start({ op: 'close' }).done.catch(() => ({ others: 0 }))
      if (others > 0) link.close()
      await link.closed // the host has ended with all that was in it
    },
  }
}
