/** The host's end of one runner: requests by id over the cell's stdin and stdout. When the cell ends, every request does. */
import type { Cell } from '../driver.ts'
import { createFrameReader, writeFrame } from '../frames.ts'
import type { Reply, SandboxRequest } from '../protocol.ts'

export type OnReply = (reply: Reply, payload: Buffer) => void

/** A request without its id, which the runner's link gives. */
export type Body = SandboxRequest extends infer R ? (R extends { id: number } ? Omit<R, 'id'> : never) : never

export interface Runner {
  readonly cell: Cell
  /** Resolves when the runner inside has spoken; rejects with the cell's last words when it ended before. */
  readonly ready: Promise<void>
  /** Whether it still lives. */
  alive(): boolean
  /** `onReply` is called until `done` or `error`, which comes once. What is returned says more to the same request. */
  start(request: Body, payload: Uint8Array | undefined, onReply: OnReply): (more: Body, payload?: Uint8Array) => void
}

const READY_WITHIN_MS = 20_000
const NOTHING = Buffer.alloc(0)

export function createRunner(cell: Cell): Runner {
  const waiting = new Map<number, OnReply>()
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
    const onReply = waiting.get(header.id)
    if (header.op === 'done' || header.op === 'error') waiting.delete(header.id)
    onReply?.(header, payload)
  })
  cell.stdout.on('data', (bytes: Buffer) => {
    try {
      read(bytes)
    } catch {
      void cell.end() // no runner speaks like this
    }
  })
  void cell.exited.then((words) => {
    clearTimeout(timer)
    alive = false
    reject(new Error(words || 'The sandbox ended before it had started.'))
    for (const [id, onReply] of waiting) {
      onReply({ op: 'error', id, code: 'lost', message: 'The sandbox has ended.' }, NOTHING)
    }
    waiting.clear()
  })
  ready.catch(() => {}) // whoever waits for it is told

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
      waiting.set(id, onReply)
      writeFrame(cell.stdin, { ...request, id }, payload)
      return (more, bytes) => {
        if (alive) writeFrame(cell.stdin, { ...more, id }, bytes)
      }
    },
  }
}
