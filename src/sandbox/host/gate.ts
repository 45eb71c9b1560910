/** A semaphore with a queue: callers above the limit wait in turn, for a bounded time. */
export interface Gate {
  /** Resolves with a function that leaves; undefined if `waitMs` passed or `signal` aborted first. */
  enter(waitMs: number, signal?: AbortSignal): Promise<(() => void) | undefined>
}

export function createGate(limit: () => number): Gate {
  let inside = 0
  const queue: (() => void)[] = []

  function leave(): () => void {
    let left = false
    return () => {
      if (left) return
      left = true
      inside--
      while (queue.length > 0 && inside < limit()) queue.shift()!()
    }
  }

  return {
    enter(waitMs, signal) {
      if (queue.length === 0 && inside < limit()) {
        inside++
        return Promise.resolve(leave())
      }
      return new Promise((resolve) => {
        const settle = (entered: boolean) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', cancel)
          if (entered) inside++
          resolve(entered ? leave() : undefined)
        }
        const admit = () => settle(true)
        const cancel = () => {
          const index = queue.indexOf(admit)
          if (index < 0) return
          queue.splice(index, 1)
          settle(false)
        }
        const timer = setTimeout(cancel, waitMs)
        queue.push(admit)
        if (signal?.aborted) cancel()
        else signal?.addEventListener('abort', cancel)
      })
    },
  }
}
