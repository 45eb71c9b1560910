/**
 * Replaces Node's clocks, timers and random numbers in a simulated world: code in it sees virtual time, and each timer
 * belongs to the process that set it. Installed once; outside a world everything works as usual.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import type { Pending, Process, Scheduler } from './scheduler.ts'

const REAL = {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  dateNow: Date.now,
  performanceNow: performance.now.bind(performance),
  random: Math.random,
  timeoutSignal: AbortSignal.timeout,
  delay: timers.setTimeout,
  randomBytes: crypto.randomBytes,
  randomInt: crypto.randomInt,
  randomUUID: crypto.randomUUID,
}

let world: Scheduler | undefined

/** Uses this world's time and random numbers until `leave`. */
export function enter(scheduler: Scheduler): void {
  world = scheduler
}

export function leave(): void {
  world = undefined
}

/** Wall clock of a process, in milliseconds since 1970. */
export function wallClock(scheduler: Scheduler, process: Process): number {
  return Math.floor(scheduler.now + process.skewMs)
}

/** A timer with the parts of Node's interface that the code uses. */
class VirtualTimer {
  private pending: Pending | undefined
  arm(scheduler: Scheduler, owner: Process, ms: number, what: string, run: () => void, again: boolean): this {
    this.pending = scheduler.schedule(owner, Math.max(1, ms), what, () => {
      if (again) this.arm(scheduler, owner, ms, what, run, again)
      run()
    })
    return this
  }
  cancel(): void {
    this.pending?.cancel()
    this.pending = undefined
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

type Callback = (...args: unknown[]) => void

function start(scheduler: Scheduler, run: Callback, ms: number, args: unknown[], again: boolean): VirtualTimer {
  const owner = scheduler.current
  if (!owner) throw new Error('A timer was set outside of every process: something real is awaited in this world.')
  const what = `timer of ${Math.round(ms)} ms`
  return new VirtualTimer().arm(scheduler, owner, ms, what, () => run(...args), again)
}

function stop(timer: unknown, real: (timer: never) => void): void {
  if (timer instanceof VirtualTimer) timer.cancel()
  else real(timer as never)
}

async function virtualDelay<T>(ms = 1, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T> {
  const aborted = () => new DOMException('The operation was aborted', 'AbortError')
  if (signal?.aborted) throw aborted()
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      timer.cancel()
      reject(aborted())
    }
    const timer = start(
      world!,
      () => {
        signal?.removeEventListener('abort', onAbort)
        resolve(value as T)
      },
      ms,
      [],
      false,
    )
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function virtualTimeoutSignal(ms: number): AbortSignal {
  const abort = new AbortController()
  start(world!, () => abort.abort(new DOMException('The operation timed out', 'TimeoutError')), ms, [], false)
  return abort.signal
}

function seededBytes(scheduler: Scheduler, size: number): Buffer {
  return Buffer.from(Array.from({ length: size }, () => scheduler.random.whole(0, 255)))
}

Object.assign(globalThis, {
  setTimeout: (run: Callback, ms = 1, ...args: unknown[]) =>
    world ? start(world, run, ms, args, false) : REAL.setTimeout(run, ms, ...args),
  setInterval: (run: Callback, ms = 1, ...args: unknown[]) =>
    world ? start(world, run, ms, args, true) : REAL.setInterval(run, ms, ...args),
  setImmediate: (run: Callback, ...args: unknown[]) =>
    world ? start(world, run, 0, args, false) : REAL.setImmediate(run, ...args),
  clearTimeout: (timer: unknown) => stop(timer, REAL.clearTimeout),
  clearInterval: (timer: unknown) => stop(timer, REAL.clearInterval),
})
Date.now = () => (world?.current ? wallClock(world, world.current) : REAL.dateNow())
performance.now = () => (world ? world.now : REAL.performanceNow())
Math.random = () => (world ? world.random.next() : REAL.random())
AbortSignal.timeout = (ms) => (world ? virtualTimeoutSignal(ms) : REAL.timeoutSignal.call(AbortSignal, ms))
timers.setTimeout = ((ms, value, options) =>
  world ? virtualDelay(ms, value, options) : REAL.delay(ms, value, options)) as typeof timers.setTimeout
crypto.randomInt = ((below: number) =>
  world ? Math.floor(world.random.next() * below) : REAL.randomInt(below)) as typeof crypto.randomInt
crypto.randomBytes = ((size: number) =>
  world ? seededBytes(world, size) : REAL.randomBytes(size)) as typeof crypto.randomBytes
crypto.randomUUID = ((options) =>
  world ? seededBytes(world, 16).toString('hex') : REAL.randomUUID(options)) as typeof crypto.randomUUID
// Updates named imports of these modules too.
syncBuiltinESMExports()
