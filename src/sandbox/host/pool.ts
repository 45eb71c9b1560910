/**
 * The pool: `pool` sandboxes are kept warm, each is used once and replaced; `maxOpen` more can be in use at once. Only a few
 * sandboxes for each core start at the same time: the kernel serializes much of a start, so more would delay them all.
 */
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cell, CellShape, Driver, Log } from '../driver.ts'
import { SandboxError, type SandboxLimits } from '../port.ts'
import type { HostSettings } from '../protocol.ts'
import { createGate } from './gate.ts'
import { createRunner, type Runner } from './runner.ts'

export interface Pool {
  /** Takes a runner; `end` ends it and makes room for another. `preloaded` is a preference. Throws SandboxError `unavailable`. */
  take(shape: CellShape, preloaded: boolean, signal: AbortSignal): Promise<{ runner: Runner; end: () => Promise<void> }>
  /** Number of ready, unused sandboxes. */
  readonly warm: number
  /** Starts and ends warm sandboxes until they match the settings. */
  refill(): void
  close(): Promise<void>
}

const RETRY_REFILL_MS = 2000
/** Simultaneous starts for each core. With 4, a tenth more sandboxes a second than with 1. */
const STARTS_PER_CORE = 4

export function createPool(driver: Driver, settings: () => HostSettings, log: Log): Pool {
  const rooms = createGate(() => settings().maxOpen)
  const starts = createGate(() => STARTS_PER_CORE * availableParallelism())
  const warm = new Map<Runner, SandboxLimits>()
  let refilling: Promise<void> | undefined
  let closed = false

  async function start(launch: () => Promise<Cell>): Promise<Runner> {
    const leave = (await starts.enter(settings().waitMs))!
    if (!leave) throw new Error('Too many sandboxes are being started at once')
    try {
      const runner = createRunner(await launch())
      await runner.ready.catch(async (error) => {
        await runner.cell.end()
        throw error
      })
      return runner
    } finally {
      leave()
    }
  }

  async function startPreloaded(shape: CellShape): Promise<Runner | undefined> {
    const launch = driver.preloaded?.(shape)
    return (
      launch &&
      start(launch).catch((error) => void log.warn({ err: error }, 'a preloaded sandbox could not be started'))
    )
  }

  function takeWarm({ limits, profile, mounts }: CellShape): Runner | undefined {
    if (profile !== 'code' || mounts.length > 0) return undefined
    for (const [runner, made] of warm) {
      if (!runner.alive() || !sameSize(made, limits)) continue
      warm.delete(runner)
      return runner
    }
    return undefined
  }

  async function refillNow(): Promise<void> {
    for (const [runner, made] of warm) {
      if (runner.alive() && sameSize(made, settings().limits) && warm.size <= settings().pool) continue
      warm.delete(runner)
      await runner.cell.end()
    }
    while (!closed && warm.size < settings().pool) {
      const { limits } = settings()
      try {
        const runner = await start(() => driver.launch({ limits, profile: 'code', mounts: [] }))
        warm.set(runner, limits)
        void runner.cell.exited.then(() => {
          if (warm.has(runner)) refill() // it died unused: replaces it
        })
      } catch (error) {
        log.warn({ err: error }, 'a sandbox for the pool could not be started')
        await sleep(RETRY_REFILL_MS, undefined, { ref: false })
      }
    }
  }

  function refill(): void {
    if (closed) return
    refilling ??= refillNow().finally(() => {
      refilling = undefined
    })
  }

  return {
    refill,
    async take(shape, preloaded, signal) {
      const leave = await rooms.enter(settings().waitMs, signal)
      if (!leave) {
        throw new SandboxError(
          'unavailable',
          signal.aborted
            ? 'The wait for a sandbox was cancelled.'
            : `All ${settings().maxOpen} sandboxes are in use: try again later, or raise sandbox.maxOpen.`,
        )
      }
      try {
        const loaded = preloaded ? await startPreloaded(shape) : undefined
        const runner = loaded ?? takeWarm(shape) ?? (await start(() => driver.launch(shape)))
        refill()
        return {
          runner,
          end: async () => {
            await runner.cell.end()
            leave()
          },
        }
      } catch (error) {
        leave()
        throw new SandboxError('unavailable', `No sandbox could be started: ${(error as Error).message}`, error)
      }
    },
    get warm() {
      return warm.size
    },
    async close() {
      closed = true
      await Promise.race([refilling, sleep(RETRY_REFILL_MS)])
      await Promise.all([...warm.keys()].map((runner) => runner.cell.end()))
      warm.clear()
    },
  }
}

/** The limits that a cell is made with. The output cap is not one of them. */
const CELL_LIMITS = ['memoryMiB', 'cpus', 'pids', 'workspaceMiB', 'files'] as const satisfies (keyof SandboxLimits)[]

/** True if a cell made with one set of limits can be used for the other. */
function sameSize(a: SandboxLimits, b: SandboxLimits): boolean {
  return CELL_LIMITS.every((name) => a[name] === b[name])
}
