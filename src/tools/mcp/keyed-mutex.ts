/** A mutex for each key: of the work under one key, one piece runs at a time, in order. */

export type RunExclusive = <T>(work: () => Promise<T>) => Promise<T>

export interface KeyedMutex {
  of(key: string): RunExclusive
}

export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>()
  return {
    of: (key) => async (work) => {
      const before = tails.get(key)
      const current = (async () => {
        await before?.catch(() => {})
        return work()
      })()
      tails.set(key, current)
      try {
        return await current
      } finally {
        if (tails.get(key) === current) tails.delete(key)
      }
    },
  }
}
