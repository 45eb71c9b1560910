/** Of the work under one name, one at a time. */

export type RunExclusive = <T>(work: () => Promise<T>) => Promise<T>

export interface KeyedMutex {
  of(name: string): RunExclusive
}

export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>()
  return {
    of: (name) => async (work) => {
      const before = tails.get(name)
      const mine = (async () => {
        await before?.catch(() => {})
        return work()
      })()
      tails.set(name, mine)
      try {
        return await mine
      } finally {
        if (tails.get(name) === mine) tails.delete(name)
      }
    },
  }
}
