/**
 * A worker thread that measures another process's thread, which can not measure itself: the longest processor time, in
 * milliseconds, without a voluntary wait. A turn of an event loop that has nothing more to do ends with such a wait, so this is an upper bound of a
 * turn, except where the turn itself waits (for a lock of the garbage collector, say). Stores it in shared memory.
 */
import { readFileSync } from 'node:fs'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const EVERY_MS = 2

export interface ThreadSampler {
  /** The longest time since the last call, in milliseconds of processor time. */
  take(): number
  stop(): Promise<unknown>
}

/** `thread`: its directory below /proc. */
export function sampleThread(thread: string): ThreadSampler {
  const longest = new Float64Array(new SharedArrayBuffer(8))
  const worker = new Worker(new URL(import.meta.url), { workerData: { thread, longest } })
  return {
    take() {
      const ms = longest[0]!
      longest[0] = 0
      return ms
    },
    stop: () => worker.terminate(),
  }
}

if (!isMainThread && workerData?.longest) {
  const { thread, longest } = workerData as { thread: string; longest: Float64Array }
  const sample = () => ({
    ms: Number(readFileSync(`${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
    waits: /^voluntary_ctxt_switches:\s*(\d+)/m.exec(readFileSync(`${thread}/status`, 'utf8'))?.[1],
  })
  let first = sample()
  setInterval(() => {
    const now = sample()
    if (now.waits !== first.waits) first = now
    else longest[0] = Math.max(longest[0]!, now.ms - first.ms)
  }, EVERY_MS)
}
