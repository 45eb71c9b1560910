/**
 * The sandboxes of one host: which interaction has which, under which epoch, until when. The newest epoch seen is the
 * only one that may command; it is remembered after the end, so that a worker that was overtaken makes no new sandbox.
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
  /** Idempotent; resolves when nothing is left of it. */
  end(): Promise<void>
}

export interface Host {
  /** True where it was made now. Throws SandboxError `unavailable`, `stale`. */
  open(spec: SandboxSpec, signal: AbortSignal): Promise<boolean>
  /** The sandbox, if `epoch` may command it. Throws SandboxError `lost`, `stale`. */
  find(interactionId: string, name: string, epoch: number): LiveSandbox
  /** One of the interaction's sandboxes by its name, or all. */
  destroy(interactionId: string, name?: string, epoch?: number): Promise<void>
  /** Interactions with a sandbox. */
  living(): string[]
  /** Sandboxes that are ready and unused. */
  warm(): number
  configure(settings: HostSettings): void
  close(): Promise<void>
}

/** Epochs kept of interactions whose sandbox is gone. */
const EPOCHS_KEPT = 10_000
const SWEEP_MS = 10_000
/** Longest delay that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function openHost(driver: Driver, initial: HostSettings, log: Log): Host {
  let settings = initial
  const pool = createPool(driver, () => settings, log)
  /** By place: interaction and name. */
  const living = new Map<string, LiveSandbox & { extend(lifetimeMs: number): void }>()
  const opening = new Map<string, { interactionId: string; done: Promise<void>; give: AbortController }>()
  const epochs = new Map<string, number>()
  const endings = new Set<Promise<void>>()

  const sweeper = setInterval(() => {
    driver.sweep().catch((error) => log.warn({ err: error }, 'what dead sandboxes left could not be removed'))
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

  async function create(spec: SandboxSpec, place: string, signal: AbortSignal): Promise<void> {
    const { interactionId, name = 'main', lifetimeMs, limits, profile = 'code', mounts = [], preloaded = false } = spec
    const { runner, end: endRunner } = await pool.take({ limits, profile, mounts }, preloaded, signal)
    let ending: Promise<void> | undefined
    let timer: NodeJS.Timeout | undefined
    const end = () => {
      ending ??= (async () => {
        clearTimeout(timer)
        await endRunner()
        if (living.get(place) === sandbox) living.delete(place)
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
    living.set(place, sandbox)
    extend(lifetimeMs)
    void runner.cell.exited.then(endAlone)
  }

  return {
    async open(spec, signal) {
      const { interactionId } = spec
      const place = placeOf(interactionId, spec.name)
      fence(interactionId, spec.epoch)
      // Where an opening fails, the first of those that wait for it begins another, and the rest wait for that.
      for (let other = opening.get(place); other; other = opening.get(place)) {
        await other.done.catch(() => {})
        fence(interactionId, spec.epoch)
      }
      const known = living.get(place)
      if (known?.runner.alive()) {
        known.extend(spec.lifetimeMs)
        return false
      }
      const give = new AbortController()
      const done = create(spec, place, AbortSignal.any([signal, give.signal]))
      opening.set(place, { interactionId, done, give })
      await done.finally(() => opening.delete(place))
      return true
    },
    find(interactionId, name, epoch) {
      fence(interactionId, epoch)
      const found = living.get(placeOf(interactionId, name))
      if (!found?.runner.alive()) throw new SandboxError('lost', 'The sandbox is gone.')
      return found
    },
    async destroy(interactionId, name, epoch) {
      if (epoch !== undefined) fence(interactionId, epoch)
      const wanted = (entry: { interactionId: string }, place: string) =>
        entry.interactionId === interactionId && (name === undefined || place === placeOf(interactionId, name))
      const starting = [...opening].filter(([place, entry]) => wanted(entry, place)).map(([, entry]) => entry)
      for (const { give } of starting) give.abort()
      await Promise.all(starting.map(({ done }) => done.catch(() => {})))
      await Promise.all([...living].filter(([place, entry]) => wanted(entry, place)).map(([, { end }]) => end()))
    },
    living: () => [...new Set([...living.values()].map(({ interactionId }) => interactionId))],
    warm: () => pool.warm,
    configure(next) {
      settings = next
      pool.refill()
    },
    async close() {
      clearInterval(sweeper)
      for (const { give } of opening.values()) give.abort()
      await Promise.allSettled([...opening.values()].map(({ done }) => done))
      await Promise.allSettled([...[...living.values()].map(({ end }) => end()), ...endings])
      await pool.close()
      await driver.close()
    },
  }
}

function placeOf(interactionId: string, name = 'main'): string {
  return `${interactionId}/${name}`
}
