/** Responses with a run: an event stream, its current state, or its final state. */
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ErrandError } from '../../domain/errors.ts'
import type { StoredEvent } from '../../domain/event.ts'
import type { InteractionSnapshot } from '../../engine/engine.ts'
import type { Edge } from '../edge.ts'
import type { Preferences } from '../request/preferences.ts'
import type { Body, Form } from '../wire/codec.ts'
import { formatEvent, STREAM_HEADERS, sendEvents } from './sse.ts'

export const INTERACTIONS = '/v1beta/interactions'

/** Maximum number of events in a log that is read without waiting for a turn. */
const SMALL_LOG = 50
/** Number of copies of a log in memory while the response is built: events, view and JSON. */
const COPIES = 3

export interface Asked {
  readonly interactionId: string
  readonly form: Form
  readonly preferences: Preferences
}

export function noInteraction(id: string): ErrandError {
  return new ErrandError('not_found', `There is no interaction ${id}.`)
}

/** The requested form. The query overrides the header. */
export function formOf(view: Form | undefined, preferences: Preferences): Form {
  return view ?? (preferences.minimal ? 'short' : 'full')
}

/** Headers with which a caller can cancel or resume before the first byte of the body. */
export function runHeaders(interactionId: string): Record<string, string> {
  return { 'X-Interaction-Id': interactionId, Location: `${INTERACTIONS}/${interactionId}` }
}

/** Responds with the current state. Throws ErrandError `not_found`. */
export async function answerNow(edge: Edge, request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<Body> {
  return encode(edge, request, reply, asked, await read(edge, request, asked.interactionId))
}

/**
 * Responds when the run ends, or with its current state after `waitS` seconds. Throws the ErrandError of a failed run. If the
 * caller disconnects, the run continues, or is cancelled with `cancelOnLeave`.
 */
export async function answerAtEnd(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: Asked & {
    readonly waitS: number | undefined
    readonly cancelOnLeave: boolean
  },
): Promise<Body | FastifyReply> {
  const { interactionId, waitS } = asked
  const left = leaving(reply)
  const timeout = waitS === undefined ? [] : [AbortSignal.timeout(waitS * 1000)]
  try {
    const signal = AbortSignal.any([left.signal, edge.closing, ...timeout])
    await edge.engine.waitForEnd(request.caller.projectId, interactionId, signal)
  } finally {
    left.release()
  }
  if (left.signal.aborted) {
    if (asked.cancelOnLeave) await cancelFor(edge, request, interactionId)
    return reply.hijack()
  }
  const snapshot = await read(edge, request, interactionId)
  if (snapshot.interaction.status === 'running' && edge.closing.aborted) throw serverCloses(interactionId)
  const { error } = snapshot.interaction
  if (snapshot.interaction.status === 'failed' && error) {
    throw new ErrandError(error.code, error.message, { retryable: error.retryable, interactionId })
  }
  return encode(edge, request, reply, asked, snapshot)
}

/** Streams the events after number `after`, then new events until the run ends. */
export async function streamRun(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: Asked & {
    readonly after: number
    readonly known?: readonly StoredEvent[] | undefined
    readonly cancelOnLeave: boolean
  },
): Promise<FastifyReply> {
  const { interactionId, after, known, form } = asked
  applied(reply, asked)
  const headers = reply.getHeaders() as OutgoingHttpHeaders
  reply.hijack()
  if (request.method === 'HEAD') {
    reply.raw.writeHead(200, { ...headers, ...STREAM_HEADERS }).end()
    return reply
  }
  const encode = request.codec.events.openEncoder(form)
  try {
    const whole = await sendEvents({
      response: reply.raw,
      headers,
      follow: (signal) => edge.engine.follow(request.caller.projectId, interactionId, after, signal, known),
      encode: (event) => formatEvent(event.seq, encode(event)),
      closing: edge.closing,
      emit: edge.emit,
      readers: edge.readers,
      hold: (bytes) => request.share?.set('responseBytes', bytes),
    })
    if (!whole && asked.cancelOnLeave) await cancelFor(edge, request, interactionId)
  } catch (err) {
    request.log.error({ err, interactionId }, 'an event stream broke')
  }
  return reply
}

async function read(edge: Edge, request: FastifyRequest, interactionId: string): Promise<InteractionSnapshot> {
  const { share } = request
  const snapshot = await edge.engine.get(request.caller.projectId, interactionId, {
    async begin(events) {
      if (events > SMALL_LOG) await share?.enter()
      share?.take('responseBytes', 0)
    },
    read: (bytes) => share?.take('responseBytes', COPIES * bytes),
  })
  if (!snapshot) throw noInteraction(interactionId)
  return snapshot
}

function encode(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: Asked,
  snapshot: InteractionSnapshot,
): Body {
  applied(reply, asked, snapshot)
  const { projectId } = request.caller
  const { interactionId, form } = asked
  return request.codec.interactions.encode(snapshot, {
    form,
    fileUrl: (kind, { name }) => edge.signer.sign({ kind, projectId, interactionId, name }),
  })
}

/** Sets `Preference-Applied` to the caller's preferences that this response follows (RFC 7240, 3). */
function applied(reply: FastifyReply, { form, preferences }: Asked, snapshot?: InteractionSnapshot): void {
  const followed = [...preferences.asked].filter((preference) => {
    if (preference === 'return=minimal') return form === 'short'
    if (preference === 'return=representation') return form === 'full'
    // Any whole response honors `wait`. `respond-async` is honored only if the run has not ended.
    if (preference === 'respond-async') return snapshot?.interaction.status === 'running'
    return preference.startsWith('handling=') || snapshot !== undefined
  })
  if (followed.length > 0) reply.header('Preference-Applied', followed.join(', '))
}

/** A signal that aborts if the caller's connection closes before the response is sent. */
function leaving(reply: FastifyReply): { signal: AbortSignal; release(): void } {
  const left = new AbortController()
  const onClose = () => left.abort()
  reply.raw.on('close', onClose)
  if (reply.raw.destroyed || reply.raw.socket?.destroyed) left.abort()
  return { signal: left.signal, release: () => reply.raw.off('close', onClose) }
}

/** Cancels the run of a caller that disconnected. Ignores that the run has just ended. */
async function cancelFor(edge: Edge, request: FastifyRequest, interactionId: string): Promise<void> {
  try {
    await edge.engine.cancel(request.caller.projectId, interactionId)
  } catch (err) {
    if (err instanceof ErrandError && (err.code === 'conflict' || err.code === 'not_found')) return
    request.log.error({ err, interactionId }, 'could not cancel the run of a caller that went away')
  }
}

function serverCloses(interactionId: string): ErrandError {
  return new ErrandError(
    'unavailable',
    `The server is closing; the run goes on. Read it at ${INTERACTIONS}/${interactionId}.`,
    { interactionId },
  )
}
