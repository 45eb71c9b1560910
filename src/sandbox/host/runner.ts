/**
 * The host's connection to one runner: requests by id over the cell's stdin and stdout. When the cell ends, all its requests
 * fail. A cell whose runner breaks the protocol is ended, so no request waits for a reply that cannot come.
 */
import type { Cell } from '../driver.ts'
import { createFrameReader, writeFrame } from '../frames.ts'
import type { Reply, RunnerRequestBody } from '../protocol.ts'
import { createReplyCheck, type ReplyCheck } from './replies.ts'

export type OnReply = (reply: Reply, payload: Buffer) => void

export interface Runner {
  readonly cell: Cell
  /** Resolves when the runner is ready. Rejects with the end of the cell's stderr if it ended before. */
  readonly ready: Promise<void>
  /** False once the cell has ended. */
  alive(): boolean
  /**
   * Sends a request. `onReply` is called until `done` or `error`, which comes exactly once. The returned function sends more
   * for the same request.
   */
  start(
    request: RunnerRequestBody,
    payload: Uint8Array | undefined,
    onReply: OnReply,
  ): (more: RunnerRequestBody, payload?: Uint8Array) => void
}

const READY_WITHIN_MS = 20_000
const NOTHING = Buffer.alloc(0)
/** Above the largest frame of a runner: payloads have at most 256 KiB. */
const MAX_FRAME_BYTES = 512 * 1024
/** Above the sum of all windows of a sandbox. A runner that acknowledges chunks without reading them exceeds it. */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024

export function createRunner(cell: Cell): Runner {
  const waiting = new Map<number, { readonly onReply: OnReply; readonly replies: ReplyCheck }>()
  let lastId = 0
  let alive = true
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(() => {
    reject(new Error('The sandbox did not start within 20 s.'))
    void cell.end()
  }, READY_WITHIN_MS)

  const read = createFrameReader<Reply>(({ header, payload }) => {
    if (header.op === 'ready') {
      clearTimeout(timer)
      return resolve()
    }
    const request = waiting.get(header.id)
    request?.replies.check(header, payload)
    request?.onReply(header, payload)
    // Only now: after an invalid reply the request must still receive the end of the sandbox.
    if (header.op === 'done' || header.op === 'error') waiting.delete(header.id)
  }, MAX_FRAME_BYTES)
  const onData = (bytes: Buffer) => {
    try {
      read(bytes)
    } catch {
      cell.stdout.off('data', onData).resume()
      void cell.end() // the runner has broken the protocol
    }
  }
  cell.stdout.on('data', onData)
  function send(request: object, payload?: Uint8Array): void {
    writeFrame(cell.stdin, request, payload)
    if (cell.stdin.writableLength > MAX_UNREAD_BYTES) void cell.end()
  }
  void cell.exited.then((words) => {
    clearTimeout(timer)
    alive = false
    reject(new Error(words || 'The sandbox ended before it had started.'))
    for (const [id, { onReply }] of waiting) {
      onReply({ op: 'error', id, code: 'lost', message: 'The sandbox has ended.' }, NOTHING)
    }
    waiting.clear()
  })
  ready.catch(() => {}) // a rejection without a waiting caller must not end the process

  return {
    cell,
    ready,
    alive: () => alive,
    start(request, payload, onReply) {
      const id = ++lastId
      if (!alive) {
        queueMicrotask(() => onReply({ op: 'error', id, code: 'lost', message: 'The sandbox has ended.' }, NOTHING))
        return () => {}
      }
      const replies = createReplyCheck(request)
      waiting.set(id, { onReply, replies })
      send({ ...request, id }, payload)
      return (more, bytes) => {
        replies.note(more)
        if (alive) send({ ...more, id }, bytes)
      }
    },
  }
}
