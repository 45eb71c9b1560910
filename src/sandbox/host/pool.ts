/**
 * Sandboxes to be had: `pool` of them warm, used once and refilled, `maxOpen` in use at once (the warm ones come on top).
 * Starts are few at a time, some for each core, since the kernel lets each of them wait; more would only make all of them late.
 */
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cell, CellShape, Driver, Log } from '../driver.ts'
import { SandboxError, type SandboxLimits } from '../port.ts'
import type { HostSettings } from '../protocol.ts'
import { createGate } from './gate.ts'
import { createRunner, type Runner } from './runner.ts'

export interface Pool {
  /** A runner of one's own, with what ends it and gives its place back; `preloaded` if it can be. Throws SandboxError `unavailable`. */
  take(shape: CellShape, preloaded: boolean, signal: AbortSignal): Promise<{ runner: Runner; end: () => Promise<void> }>
  /** Ready and unused. */
  readonly warm: number
  /** Brings the warm ones in line with the settings. */
  refill(): void
  close(): Promise<void>
}

const RETRY_REFILL_MS = 2000
/** At once: with 4, a tenth more sandboxes a second than with 1. */
const STARTS_A_CORE = 4

export function createPool(driver: Driver, settings: () => HostSettings, log: Log): Pool {
  const rooms = createGate(() => settings().maxOpen)
  const starts = createGate(() => STARTS_A_CORE * availableParallelism())
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
      launch && start(launch).catch((error) => void log.warn({ err: error }, 'a sandbox could not be had preloaded'))
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
          if (warm.has(runner)) refill() // it died unused: its rest is removed, and another made
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

/** The output cap is no property of a cell. */
const CELL_LIMITS = ['memoryMiB', 'cpus', 'pids', 'workspaceMiB', 'files'] as const satisfies (keyof SandboxLimits)[]

/** Whether a cell made with the one limits serves the other. */
function sameSize(a: SandboxLimits, b: SandboxLimits): boolean {
  return CELL_LIMITS.every((name) => a[name] === b[name])
}
