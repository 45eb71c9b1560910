/** How a caller gets a run: as a stream, as it stands now, or whole at its end. All three are reads of its log. */
import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ErrandError } from '../../domain/errors.ts'
import type { StoredEvent } from '../../domain/event.ts'
import type { InteractionSnapshot } from '../../engine/engine.ts'
import type { Edge } from '../edge.ts'
import type { Preferences } from '../request/preferences.ts'
import type { Body, Form } from '../wire/codec.ts'
import { STREAM_HEADERS, sendEvents } from './sse.ts'

export const INTERACTIONS = '/v1beta/interactions'

/** Events of a log that is read without waiting for a turn. */
const SMALL_LOG = 50
/** How often what was read of a log is in memory while the answer is made: as events, as the view, as JSON. */
const COPIES = 3

export interface Asked {
  readonly interactionId: string
  readonly form: Form
  readonly preferences: Preferences
}

export function noInteraction(id: string): ErrandError {
  return new ErrandError('not_found', `There is no interaction ${id}.`)
}

/** The query goes before the header. */
export function formOf(view: Form | undefined, preferences: Preferences): Form {
  return view ?? (preferences.minimal ? 'short' : 'full')
}

/** So that a caller can cancel or resume before the first byte of the body. */
export function runHeaders(interactionId: string): Record<string, string> {
  return { 'X-Interaction-Id': interactionId, Location: `${INTERACTIONS}/${interactionId}` }
}

/** The interaction as it stands. Throws ErrandError `not_found`. */
export async function answerNow(edge: Edge, request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<Body> {
  return encode(edge, request, reply, asked, await read(edge, request, asked.interactionId))
}

/**
 * The interaction at its end, or as it stands after `waitS` seconds. A failed one is thrown as the ErrandError that it
 * ended with. Where the caller goes away first, the run goes on, or is cancelled where that was asked for.
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

/** The log after event number `after`, then live until the end. */
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
  try {
    const whole = await sendEvents({
      response: reply.raw,
      headers,
      follow: (signal) => edge.engine.follow(request.caller.projectId, interactionId, after, signal, known),
      encode: request.codec.events.openEncoder(form),
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

/** Tells in `Preference-Applied` which of the caller's preferences this answer follows (RFC 7240, 3). */
function applied(reply: FastifyReply, { form, preferences }: Asked, snapshot?: InteractionSnapshot): void {
  const followed = [...preferences.asked].filter((preference) => {
    if (preference === 'return=minimal') return form === 'short'
    if (preference === 'return=representation') return form === 'full'
    // Waiting is followed by any whole answer; going on without one only where there is none yet.
    if (preference === 'respond-async') return snapshot?.interaction.status === 'running'
    return preference.startsWith('handling=') || snapshot !== undefined
  })
  if (followed.length > 0) reply.header('Preference-Applied', followed.join(', '))
}

/** Aborts when the caller's connection closes before the answer has gone. */
function leaving(reply: FastifyReply): { signal: AbortSignal; release(): void } {
  const left = new AbortController()
  const onClose = () => left.abort()
  reply.raw.on('close', onClose)
  if (reply.raw.destroyed || reply.raw.socket?.destroyed) left.abort()
  return { signal: left.signal, release: () => reply.raw.off('close', onClose) }
}

/** For a caller that went away: nobody is left to hear that the run had just ended by itself. */
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
