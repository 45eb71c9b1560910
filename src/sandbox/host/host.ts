/**
 * The sandboxes of one host by interaction and name, each with an epoch and a deadline. Only the newest epoch may send
 * commands. The host remembers it after the sandbox has ended, so that a worker that lost its run makes no new sandbox.
 */
import type { Driver, Log } from '../driver.ts'
import { SandboxError, type SandboxLimits, type SandboxSpec } from '../port.ts'
import type { HostSettings } from '../protocol.ts'
import { createPool } from './pool.ts'
import type { Runner } from './runner.ts'
import { createSteps, type Steps } from './steps.ts'

export interface LiveSandbox {
  readonly interactionId: string
  readonly name: string
  readonly limits: SandboxLimits
  readonly runner: Runner
  readonly steps: Steps
  /** Resolves when nothing is left of it. Idempotent. */
  end(): Promise<void>
}

export interface Host {
  /** True if the sandbox was created, false if it was resumed. Throws SandboxError `unavailable`, `stale`. */
  open(spec: SandboxSpec, signal: AbortSignal): Promise<boolean>
  /** Throws SandboxError `lost`, or `stale` if `epoch` is not the newest. */
  find(interactionId: string, name: string, epoch: number): LiveSandbox
  /** Ends one of the interaction's sandboxes by name, or all. */
  destroy(interactionId: string, name?: string, epoch?: number): Promise<void>
  /** Ids of interactions with a sandbox. */
  living(): string[]
  /** Number of ready, unused sandboxes. */
  warm(): number
  configure(settings: HostSettings): void
  close(): Promise<void>
}

/** Number of epochs that are remembered. */
const EPOCHS_KEPT = 10_000
const SWEEP_MS = 10_000
/** Longest delay of a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function openHost(driver: Driver, initial: HostSettings, log: Log): Host {
  let settings = initial
  const pool = createPool(driver, () => settings, log)
  /** By `keyOf`: interaction and name. */
  const living = new Map<string, LiveSandbox & { extend(lifetimeMs: number): void }>()
  const opening = new Map<string, { interactionId: string; done: Promise<void>; abort: AbortController }>()
  const epochs = new Map<string, number>()
  const endings = new Set<Promise<void>>()

  const sweeper = setInterval(() => {
    driver.sweep().catch((error) => log.warn({ err: error }, 'files or cgroups of dead sandboxes could not be removed'))
  }, SWEEP_MS)
  pool.refill()

  function fence(interactionId: string, epoch: number): void {
    const newest = epochs.get(interactionId) ?? epoch
    if (epoch < newest) {
      throw new SandboxError('stale', `Epoch ${epoch} of ${interactionId} is over: epoch ${newest} owns its sandbox.`)
    }
    epochs.delete(interactionId)
    epochs.set(interactionId, epoch)
    for (const id of epochs.keys()) {
      if (epochs.size <= EPOCHS_KEPT) break
      if (isInUse(id)) break
      epochs.delete(id)
    }
  }

  function isInUse(interactionId: string): boolean {
    return [...living.values(), ...opening.values()].some((entry) => entry.interactionId === interactionId)
  }

  async function create(spec: SandboxSpec, key: string, signal: AbortSignal): Promise<void> {
    const { interactionId, name = 'main', lifetimeMs, limits, profile = 'code', mounts = [], preloaded = false } = spec
    const { runner, end: endRunner } = await pool.take({ limits, profile, mounts }, preloaded, signal)
    let ending: Promise<void> | undefined
    let timer: NodeJS.Timeout | undefined
    const end = () => {
      ending ??= (async () => {
        clearTimeout(timer)
        await endRunner()
        if (living.get(key) === sandbox) living.delete(key)
      })()
      endings.add(ending)
      void ending.catch(() => {}).finally(() => endings.delete(ending!))
      return ending
    }
    const endAlone = () =>
      void end().catch((error) => log.error({ err: error, interactionId }, 'a sandbox could not be ended'))
    const extend = (ms: number) => {
      clearTimeout(timer)
      timer = setTimeout(endAlone, Math.min(ms, MAX_TIMER_MS))
      runner.start({ op: 'lease', ms }, undefined, () => {})
    }
    const sandbox = {
      interactionId,
      name,
      limits,
      runner,
      steps: createSteps(runner, limits, endAlone),
      end,
      extend,
    }
    if (signal.aborted) {
      await end()
      throw new SandboxError('unavailable', 'The wait for a sandbox was cancelled.')
    }
    living.set(key, sandbox)
    extend(lifetimeMs)
    void runner.cell.exited.then(endAlone)
  }

  return {
    async open(spec, signal) {
      const { interactionId } = spec
      const key = keyOf(interactionId, spec.name)
      fence(interactionId, spec.epoch)
      // If an opening fails, the first of the waiting callers opens the next, and the rest wait for that.
      for (let other = opening.get(key); other; other = opening.get(key)) {
        await other.done.catch(() => {})
        fence(interactionId, spec.epoch)
      }
      const known = living.get(key)
      if (known?.runner.alive()) {
        known.extend(spec.lifetimeMs)
        return false
      }
      const abort = new AbortController()
      const done = create(spec, key, AbortSignal.any([signal, abort.signal]))
      opening.set(key, { interactionId, done, abort })
      await done.finally(() => opening.delete(key))
      return true
    },
    find(interactionId, name, epoch) {
      fence(interactionId, epoch)
      const found = living.get(keyOf(interactionId, name))
      if (!found?.runner.alive()) throw new SandboxError('lost', 'The sandbox is gone.')
      return found
    },
    async destroy(interactionId, name, epoch) {
      if (epoch !== undefined) fence(interactionId, epoch)
      const wanted = (entry: { interactionId: string }, key: string) =>
        entry.interactionId === interactionId && (name === undefined || key === keyOf(interactionId, name))
      const starting = [...opening].filter(([key, entry]) => wanted(entry, key)).map(([, entry]) => entry)
      for (const { abort } of starting) abort.abort()
      await Promise.all(starting.map(({ done }) => done.catch(() => {})))
      await Promise.all([...living].filter(([key, entry]) => wanted(entry, key)).map(([, { end }]) => end()))
    },
    living: () => [...new Set([...living.values()].map(({ interactionId }) => interactionId))],
    warm: () => pool.warm,
    configure(next) {
      settings = next
      pool.refill()
    },
    async close() {
      clearInterval(sweeper)
      for (const { abort } of opening.values()) abort.abort()
      await Promise.allSettled([...opening.values()].map(({ done }) => done))
      await Promise.allSettled([...[...living.values()].map(({ end }) => end()), ...endings])
      await pool.close()
      await driver.close()
    },
  }
}

function keyOf(interactionId: string, name = 'main'): string {
  return `${interactionId}/${name}`
}
