/**
 * The simulated file store, an implementation of src/blobs/port.ts. All nodes share it. It can be slow or unreachable.
 */
import { Readable } from 'node:stream'
import { type Blobs, BlobsUnavailable } from '../../src/blobs/port.ts'
import type { Odds } from './odds.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface FileStore {
  /** Connects one node to the file store. */
  connect(node: Process): Blobs
  /** Whether a file is stored. Bypasses the network. */
  has(key: string): boolean
}

export function createFileStore({ scheduler, odds }: { scheduler: Scheduler; odds: Odds }): FileStore {
  const server: Process = { name: 'file store', state: 'running', skewMs: 0 }
  const files = new Map<string, Uint8Array>()
  const { random, chance } = scheduler

  function connect(node: Process): Blobs {
    function request<T>(what: string, act: () => T): Promise<T> {
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      const thereMs = random.next() * 5
      const backMs = random.next() * 5
      // A failed request may still have taken effect.
      const fails = chance(odds.filesFail)
      const happens = !fails || chance(0.5)
      scheduler.schedule(server, thereMs, `${what} of ${node.name}`, () => {
        const answer = happens ? act() : undefined
        scheduler.schedule(node, backMs, `${what}: ${fails ? 'failed' : 'answer'}`, () => {
          if (fails) reject(new BlobsUnavailable('The file store is out of reach.'))
          else resolve(answer as T)
        })
      })
      return promise
    }

    return {
      async put(key, bytes) {
        const parts: Uint8Array[] = []
        for await (const part of bytes instanceof Uint8Array ? [bytes] : bytes) parts.push(part)
        await request(`put ${key}`, () => {
          files.set(key, Buffer.concat(parts))
        })
      },
      get: (key) => request(`get ${key}`, () => files.get(key)),
      async open(key) {
        const bytes = await request(`open ${key}`, () => files.get(key))
        return bytes && Readable.from([bytes])
      },
      removeAll: (owner) =>
        request(`remove ${owner}`, () => {
          for (const key of files.keys()) if (key.startsWith(`${owner}/`)) files.delete(key)
        }),
      async *owners() {
        yield* await request('owners', () => new Set([...files.keys()].map((key) => key.split('/')[0]!)))
      },
      async close() {},
    }
  }

  return { connect, has: (key) => files.has(key) }
}
