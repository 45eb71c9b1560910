/**
 * Validates a runner's replies. A runner shares its sandbox with hostile code, which may control it. So the host checks shape
 * and size of every reply before it stores or forwards it, and ends the sandbox if the protocol does not allow the reply.
 */
import type { LimitHit } from '../port.ts'
import {
  CHUNK_BYTES,
  CHUNK_WINDOW,
  type Done,
  MAX_CONNECTIONS,
  MAX_LIST_BYTES,
  type Reply,
  type RunnerRequestBody,
  STDERR_BYTES,
} from '../protocol.ts'
import { checkJobDone, isEnd, isSaved } from './job-replies.ts'

export interface ReplyCheck {
  /** Throws an Error if the runner may not send this reply now. */
  check(reply: Reply, payload: Buffer): void
  /** Notes a further message to the same request. */
  note(more: RunnerRequestBody): void
}

/** Bytes that all replies of a kind may have together. */
type Room = Partial<Record<Reply['op'], number>>

const NOTHING: Room = {}
/** Size of the mark where output was cut. */
const MARK_BYTES = 1024
/** Factor for `live` output: a line may be shown several times before it is settled. */
const LIVE_TIMES = 4
const LIVE_BYTES = 4 * 1024 * 1024
const MAX_TEXT_CHARS = 20_000
const MAX_HITS = 20

export function createReplyCheck(request: RunnerRequestBody): ReplyCheck {
  const room = roomFor(request)
  const streams = createStreams(request)

  function check(reply: Reply, payload: Buffer): void {
    if (reply.op === 'done') checkDone(request, reply)
    else if (reply.op === 'error') checkError(reply)
    else if (!streams.check(reply, payload)) {
      const left = room[reply.op]
      if (left === undefined || payload.length === 0 || payload.length > left) throw new Error('invalid reply')
      room[reply.op] = left - payload.length
    }
  }

  return { check, note: streams.note }
}

function roomFor(request: RunnerRequestBody): Room {
  switch (request.op) {
    case 'job':
      return { out: request.outputBytes + MARK_BYTES }
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

/** Counts the chunks of a request and their acknowledgements: the runner may have at most one window in flight. */
function createStreams(request: RunnerRequestBody) {
  /** Unacknowledged chunks by open connection. */
  const inFlight = new Map<number, number>()
  /** Connections with one direction ended. */
  const half = new Set<number>()
  let left = request.op === 'read' ? request.maxBytes : Number.POSITIVE_INFINITY
  if (request.op === 'read' || request.op === 'spawn') inFlight.set(0, 0)

  /** False if the reply belongs to no stream. */
  function check(reply: Reply, payload: Buffer): boolean {
    const conn = 'conn' in reply ? (reply.conn ?? 0) : 0
    switch (reply.op) {
      case 'listening':
        return request.op === 'listen'
      case 'accept':
        if (!Number.isSafeInteger(conn) || inFlight.has(conn)) return false
        inFlight.set(conn, 0)
        // Twice the limit: the runner may see the end of a connection before the host does.
        return request.op === 'listen' && inFlight.size <= 2 * MAX_CONNECTIONS
      case 'ack':
        return request.op === 'write' || request.op === 'spawn' || request.op === 'listen'
      case 'fin':
        endOne(conn)
        return request.op === 'spawn' || request.op === 'listen'
      case 'chunk': {
        left -= payload.length
        const count = inFlight.get(conn)
        if (payload.length > CHUNK_BYTES || left < 0) return false
        // A connection that the outside has closed may still have sent chunks, which are dropped.
        if (count === undefined) return ['read', 'spawn', 'listen'].includes(request.op)
        inFlight.set(conn, count + 1)
        return count < CHUNK_WINDOW
      }
      default:
        return false
    }
  }

  function note(more: RunnerRequestBody): void {
    const conn = 'conn' in more ? (more.conn ?? 0) : 0
    const count = inFlight.get(conn)
    if (count === undefined) return
    if (more.op === 'ack') inFlight.set(conn, count - 1)
    else if (more.op === 'commit') endOne(conn)
    else if (more.op === 'abort') forget(conn)
  }

  function endOne(conn: number): void {
    if (half.has(conn)) forget(conn)
    else if (inFlight.has(conn)) half.add(conn)
  }

  function forget(conn: number): void {
    inFlight.delete(conn)
    half.delete(conn)
  }

  return { check, note }
}

function checkDone(request: RunnerRequestBody, done: Done): void {
  if (request.op === 'job') checkJobDone(request, done)
  const ends = request.op === 'exec' || request.op === 'spawn'
  if (ends && !isEnd(done.end)) throw new Error('invalid end of a step or program')
  const { durationMs = 0, truncated = false, sessionRestarted = false, full = [] } = done
  const plain = Number.isSafeInteger(durationMs) && typeof truncated === 'boolean'
  const listed = Array.isArray(full) && full.length <= MAX_HITS && full.every(isHit)
  const { saved } = done
  const kept = saved === undefined || (request.op === 'exec' && isSaved(saved, request.saveBytes))
  if (!plain || typeof sessionRestarted !== 'boolean' || !listed || !kept) throw new Error('invalid end of a step')
}

const PLACES = ['/workspace', '/tmp', '/dev/shm']

/** A limit that is reached when a step ends. */
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
  throw new Error('invalid error')
}
