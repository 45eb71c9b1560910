/** Pipes bytes between a sandbox and a host. Counts them against the run's budget, in both directions, and closes idle connections. */
import { type Duplex, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ByteBudget } from './port.ts'
import { Refusal } from './proxy-messages.ts'

const MAX_LISTENERS = 30

export interface Pipe {
  /** Returns a stream that passes bytes on and counts them. Fails when the budget is spent. */
  meter(): Transform
  /** Counts every byte read from or written to the connection, and closes it when the budget is spent. */
  count(connection: Duplex): void
  /** Pipes both ways, until both sides have ended or one fails. */
  both(client: Duplex, upstream: Duplex): Promise<void>
  /** Closes the connection after the idle time without a byte in either direction. */
  watch(connection: Duplex): void
}

export function createPipe(budget: ByteBudget, idleMs: number): Pipe {
  function meter(): Transform {
    return new Transform({
      transform(chunk: Buffer, _encoding, callback) {
        budget.bytes -= chunk.length
        if (budget.bytes < 0) callback(new Error(budget.spent))
        else callback(null, chunk)
      },
    })
  }

  return {
    meter,
    async both(client, upstream) {
      // Each pipeline adds several listeners to both streams.
      for (const stream of [client, upstream]) stream.setMaxListeners(MAX_LISTENERS)
      try {
        await Promise.all([pipeline(client, meter(), upstream), pipeline(upstream, meter(), client)])
      } finally {
        client.destroy()
        upstream.destroy()
      }
    },
    count(connection) {
      onBytes(connection, (bytes) => {
        budget.bytes -= bytes
        if (budget.bytes < 0) connection.destroy(new Refusal(403, budget.spent))
      })
    },
    watch(connection) {
      const timer = setTimeout(() => connection.destroy(), idleMs)
      onBytes(connection, () => timer.refresh())
      connection.once('close', () => clearTimeout(timer))
    },
  }
}

/** Calls `hear` with the number of bytes of each push and write. Wrapping the stream's methods counts them for any reader. */
function onBytes(connection: Duplex, hear: (bytes: number) => void): void {
  const { push, write } = connection
  connection.push = (...bytes: Parameters<Duplex['push']>) => {
    hear(sizeOf(bytes[0], bytes[1]))
    return push.apply(connection, bytes)
  }
  connection.write = ((...bytes: Parameters<Duplex['write']>) => {
    hear(sizeOf(bytes[0], bytes[1]))
    return write.apply(connection, bytes)
  }) as Duplex['write']
}

function sizeOf(bytes: unknown, encoding?: unknown): number {
  if (typeof bytes === 'string')
    return Buffer.byteLength(bytes, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  return bytes instanceof Uint8Array ? bytes.byteLength : 0
}
