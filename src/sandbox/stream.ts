/**
 * The outer end of a stream into a sandbox, as a Duplex. At most CHUNK_WINDOW chunks are in flight in each direction, so a
 * side that does not read blocks the other and costs no memory.
 */
import { Duplex } from 'node:stream'
import { CHUNK_WINDOW, type Reply, STREAM_CHUNK_BYTES } from './protocol.ts'

/** A message about one stream. The owner of the request adds `conn`. */
export interface StreamMessage {
  readonly op: 'chunk' | 'ack' | 'commit' | 'abort'
}

export interface OuterStream {
  readonly duplex: Duplex
  receive(reply: Reply, payload: Buffer): void
  /** Ends the stream: no more messages will come. */
  lose(error?: Error): void
}

export function createStream(send: (message: StreamMessage, payload?: Uint8Array) => void): OuterStream {
  let inFlight = 0
  let unacknowledged = 0
  let over = false
  let onRoom: (() => void) | undefined

  function acknowledge(): void {
    for (; unacknowledged > 0; unacknowledged--) send({ op: 'ack' })
  }

  async function sendAll(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !over; at += STREAM_CHUNK_BYTES) {
      while (inFlight >= CHUNK_WINDOW && !over) {
        await new Promise<void>((resolve) => {
          onRoom = resolve
        })
      }
      if (over) return
      inFlight++
      send({ op: 'chunk' }, bytes.subarray(at, at + STREAM_CHUNK_BYTES))
    }
  }

  function end(): void {
    over = true
    onRoom?.()
  }

  const duplex = new Duplex({
    allowHalfOpen: true,
    read: acknowledge,
    write(chunk: Buffer, _encoding, callback) {
      sendAll(chunk).then(() => callback(over ? new Error('The stream with the sandbox is over.') : null))
    },
    final(callback) {
      if (!over) send({ op: 'commit' })
      callback()
    },
    destroy(error, callback) {
      if (!over) send({ op: 'abort' })
      end()
      callback(error)
    },
  })

  return {
    duplex,
    receive(reply, payload) {
      if (reply.op === 'ack') {
        inFlight--
        onRoom?.()
      } else if (reply.op === 'fin') duplex.push(null)
      else if (reply.op === 'chunk') {
        unacknowledged++
        if (duplex.push(payload)) acknowledge()
      }
    },
    lose(error) {
      if (over) return
      end()
      if (error) duplex.destroy(error)
      else duplex.push(null)
    },
  }
}
