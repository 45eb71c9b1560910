/** At most so many at once; who comes over that waits in turn, for a bounded time. */
export interface Gate {
  /** Resolves with what gives the place back; undefined when `waitMs` passed or `signal` aborted first. */
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
          signal?.removeEventListener('abort', giveUp)
          if (entered) inside++
          resolve(entered ? leave() : undefined)
        }
        const admit = () => settle(true)
        const giveUp = () => {
          const place = queue.indexOf(admit)
          if (place < 0) return
          queue.splice(place, 1)
          settle(false)
        }
        const timer = setTimeout(giveUp, waitMs)
        queue.push(admit)
        if (signal?.aborted) giveUp()
        else signal?.addEventListener('abort', giveUp)
      })
    },
  }
}
