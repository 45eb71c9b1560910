/** Total and idle timeout of a fetch. One signal aborts when either is over or the caller aborts, with the reason. */
import { EgressError } from './port.ts'

export interface FetchTimeout {
  readonly signal: AbortSignal
  /** Awaits the promise. Throws the signal's reason if a timeout is over or the caller aborts first. */
  await<T>(promise: Promise<T>): Promise<T>
  /** Stops the timers. The signal keeps its state. */
  stop(): void
}

export function startTimeout(caller: AbortSignal, timeoutMs: number, idleMs: number): FetchTimeout {
  const abort = new AbortController()
  const { signal } = abort
  const onCaller = () => abort.abort(caller.reason)
  caller.addEventListener('abort', onCaller)
  if (caller.aborted) onCaller()
  const slow = (ms: number, what: string) => () =>
    abort.abort(new EgressError('too_slow', `${what} ${(ms / 1_000).toLocaleString('en-US')} s.`))
  const timer = timeoutMs < Number.POSITIVE_INFINITY && setTimeout(slow(timeoutMs, 'It took longer than'), timeoutMs)

  return {
    signal,
    async await(promise) {
      const idle = setTimeout(slow(idleMs, 'Nothing came for'), idleMs)
      const over = Promise.withResolvers<never>()
      const onAbort = () => over.reject(signal.reason)
      if (signal.aborted) onAbort()
      signal.addEventListener('abort', onAbort)
      try {
        return await Promise.race([promise, over.promise])
      } finally {
        clearTimeout(idle)
        signal.removeEventListener('abort', onAbort)
      }
    },
    stop() {
      if (timer) clearTimeout(timer)
      caller.removeEventListener('abort', onCaller)
    },
  }
}
