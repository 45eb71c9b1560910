/**
 * What a runner may answer to a request. A runner shares its sandbox with hostile code and may be under its control, so
 * the host checks shape and size of every reply before anything holds it or hands it on: what the protocol does not
 * allow is no reply of ours, and the sandbox ends.
 */
import type { ExecEnd, LimitHit } from '../port.ts'
import {
  CHUNK_BYTES,
  CHUNK_WINDOW,
  type ExecDone,
  MAX_CONNECTIONS,
  MAX_LIST_BYTES,
  type Reply,
  type RunnerRequestBody,
  STDERR_BYTES,
} from '../protocol.ts'

export interface ReplyCheck {
  /** Throws an Error for a reply that the runner must not send now. */
  hear(reply: Reply, payload: Buffer): void
  /** More that is said to the same request. */
  say(more: RunnerRequestBody): void
}

/** Bytes that replies of one kind may carry together; undefined: any number, in chunks that are acknowledged. */
type Room = Partial<Record<Reply['op'], number>>

const NOTHING: Room = {}
/** The mark where output was cut. */
const MARK_BYTES = 1024
/** Lines may be shown several times before they are settled. */
const LIVE_TIMES = 4
const LIVE_BYTES = 4 * 1024 * 1024
const MAX_TEXT_CHARS = 20_000
const MAX_HITS = 20

export function createReplyCheck(request: RunnerRequestBody): ReplyCheck {
  const room = roomFor(request)
  const streams = createStreams(request)

  function hear(reply: Reply, payload: Buffer): void {
    if (reply.op === 'done') checkDone(request, reply)
    else if (reply.op === 'error') checkError(reply)
    else if (!streams.hear(reply, payload)) {
      const left = room[reply.op]
      if (left === undefined || payload.length === 0 || payload.length > left) throw new Error('no such reply')
      room[reply.op] = left - payload.length
    }
  }

  return { hear, say: streams.say }
}

function roomFor(request: RunnerRequestBody): Room {
  switch (request.op) {
    case 'exec':
      return { out: request.outputBytes + MARK_BYTES, live: LIVE_TIMES * request.outputBytes + LIVE_BYTES }
    case 'list':
      return { entries: MAX_LIST_BYTES }
    case 'spawn':
      return { err: STDERR_BYTES }
    default:
      return NOTHING
  }
}

/** The chunks of a request and their acknowledgements: no more than the window may be under way from the runner. */
function createStreams(request: RunnerRequestBody) {
  /** Chunks that nobody has acknowledged yet, by connection that is not over. */
  const underWay = new Map<number, number>()
  /** Connections of which one direction has ended. */
  const half = new Set<number>()
  let left = request.op === 'read' ? request.maxBytes : Number.POSITIVE_INFINITY
  if (request.op === 'read' || request.op === 'spawn') underWay.set(0, 0)

  /** False where the reply belongs to no stream. */
  function hear(reply: Reply, payload: Buffer): boolean {
    const conn = 'conn' in reply ? (reply.conn ?? 0) : 0
    switch (reply.op) {
      case 'listening':
        return request.op === 'listen'
      case 'accept':
        if (!Number.isSafeInteger(conn) || underWay.has(conn)) return false
        underWay.set(conn, 0)
        // Twice: the runner may see the end of one before the host does.
        return request.op === 'listen' && underWay.size <= 2 * MAX_CONNECTIONS
      case 'ack':
        return request.op === 'write' || request.op === 'spawn' || request.op === 'listen'
      case 'fin':
        endOne(conn)
        return request.op === 'spawn' || request.op === 'listen'
      case 'chunk': {
        left -= payload.length
        const count = underWay.get(conn)
        if (payload.length > CHUNK_BYTES || left < 0) return false
        // What is over for the outside may still have sent some, which nobody takes.
        if (count === undefined) return request.op !== 'exec' && request.op !== 'list'
        underWay.set(conn, count + 1)
        return count < CHUNK_WINDOW
      }
      default:
        return false
    }
  }

  function say(more: RunnerRequestBody): void {
    const conn = 'conn' in more ? (more.conn ?? 0) : 0
    const count = underWay.get(conn)
    if (count === undefined) return
    if (more.op === 'ack') underWay.set(conn, count - 1)
    else if (more.op === 'commit') endOne(conn)
    else if (more.op === 'abort') forget(conn)
  }

  function endOne(conn: number): void {
    if (half.has(conn)) forget(conn)
    else if (underWay.has(conn)) half.add(conn)
  }

  function forget(conn: number): void {
    underWay.delete(conn)
    half.delete(conn)
  }

  return { hear, say }
}

function checkDone(request: RunnerRequestBody, done: Partial<ExecDone>): void {
  const ends = request.op === 'exec' || request.op === 'spawn'
  if (ends && !isEnd(done.end)) throw new Error('no end of a step or a program')
  const { durationMs = 0, truncated = false, sessionRestarted = false, full = [] } = done
  const plain = Number.isSafeInteger(durationMs) && typeof truncated === 'boolean'
  const listed = Array.isArray(full) && full.length <= MAX_HITS && full.every(isHit)
  if (!plain || typeof sessionRestarted !== 'boolean' || !listed) throw new Error('no end of a step')
}

/** The ends that a runner can see; the others are the host's to tell. */
function isEnd(end: unknown): end is ExecEnd {
  const { kind, code, signal, afterMs } = (end ?? {}) as Record<string, unknown>
  if (kind === 'exit') return Number.isSafeInteger(code)
  if (kind === 'signal') return typeof signal === 'string' && /^[A-Z0-9+]{1,20}$/.test(signal)
  if (kind === 'timeout') return Number.isSafeInteger(afterMs)
  return kind === 'cancelled'
}

const PLACES = ['/workspace', '/tmp', '/dev/shm']

/** Of what is at its limit as a step ends. */
function isHit(hit: unknown): hit is LimitHit {
  const { kind, place, mebibytes, count } = (hit ?? {}) as Record<string, unknown>
  if (kind === 'space') return PLACES.includes(place as string) && Number.isSafeInteger(mebibytes)
  if (kind === 'files') return PLACES.includes(place as string) && Number.isSafeInteger(count)
  if (kind === 'process_memory') return Number.isSafeInteger(mebibytes)
  return kind === 'processes' && Number.isSafeInteger(count)
}

function checkError({ code, message }: Reply & { op: 'error' }): void {
  const known = ['unavailable', 'not_found', 'not_a_file', 'too_large', 'no_space', 'invalid_path', 'denied']
  if (known.includes(code) && typeof message === 'string' && message.length <= MAX_TEXT_CHARS) return
  throw new Error('no such error')
}
