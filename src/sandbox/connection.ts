/** The server's connection to the sandbox host: requests by id, and `lost` for all pending ones when the host is gone. */
import { connect, type Socket } from 'node:net'
import { createFrameReader, writeFrame } from './frames.ts'
import { SandboxError } from './port.ts'
import type { Done, HostRequestBody, Reply } from './protocol.ts'

export interface Call {
  /** The result. Rejects with the host's SandboxError, or `lost`. */
  readonly done: Promise<Done>
  /** Sends more for the same request. */
  send(more: HostRequestBody, payload?: Uint8Array): void
}

export interface Connection {
  /** `onReply` is called for each reply before the last. */
  start(request: HostRequestBody, payload?: Uint8Array, onReply?: (reply: Reply, payload: Buffer) => void): Call
  readonly closed: Promise<void>
  alive(): boolean
  close(): void
}

interface Waiting {
  readonly onReply: ((reply: Reply, payload: Buffer) => void) | undefined
  readonly settle: PromiseWithResolvers<Done>
}

/** Rejects with the system's error (ENOENT, ECONNREFUSED) if no host listens. */
export async function openConnection(socketPath: string): Promise<Connection> {
  const socket = connect(socketPath)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return createConnection(socket)
}

function createConnection(socket: Socket): Connection {
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>()
  const read = createFrameReader<Reply>(({ header, payload }) => {
    const { onReply, settle } = waiting.get(header.id) ?? {}
    if (header.op === 'done' || header.op === 'error') waiting.delete(header.id)
    if (header.op === 'done') settle?.resolve(header)
    else if (header.op === 'error') settle?.reject(new SandboxError(header.code, header.message))
    else onReply?.(header, payload)
  })
  socket.on('data', (bytes) => {
    try {
      read(bytes)
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
  socket.on('error', () => {}) // `close` follows
  socket.on('close', () => {
    for (const { settle } of waiting.values()) {
      settle.reject(new SandboxError('lost', 'The connection to the sandbox host is lost, and its sandboxes with it.'))
    }
    waiting.clear()
    onClosed()
  })

  return {
    closed,
    alive: () => !socket.destroyed,
    close: () => socket.destroy(),
    start(request, payload, onReply) {
      const id = ++lastId
      const settle = Promise.withResolvers<Done>()
      if (socket.destroyed) settle.reject(new SandboxError('lost', 'The connection to the sandbox host is lost.'))
      else {
        waiting.set(id, { onReply, settle })
        writeFrame(socket, { ...request, id }, payload)
      }
      return {
        done: settle.promise,
        send(more, bytes) {
          if (waiting.has(id)) writeFrame(socket, { ...more, id }, bytes)
        },
      }
    },
  }
}
