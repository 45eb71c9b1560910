/**
 * The guard as a `fetch` function, for libraries that accept one. Responses are streamed, uncompressed, and limited by the
 * terms. A refused request rejects with EgressError.
 */
import { type Egress, EgressError, type Fetched, type LibraryTerms } from './port.ts'

/** Statuses without a body (RFC 9110), for which Response accepts none. */
const WITHOUT_BODY = new Set([204, 205, 304])

export function createLibraryFetch(egress: Egress, terms: LibraryTerms): typeof globalThis.fetch {
  return async function fetchThroughGuard(input, init) {
    // The Request constructor handles every form of the two arguments.
    const request = new Request(input, init)
    const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer())
    const answer = await egress.fetch(request.url, {
      ...terms,
      signal: AbortSignal.any([terms.signal, request.signal]),
      method: request.method,
      headers: Object.fromEntries([...request.headers, ['accept-encoding', 'identity']]),
      body,
      redirect: request.redirect,
    })
    const encoding = answer.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      answer.close()
      throw new EgressError('unreachable', 'The answer is compressed, though it was asked for as it is.')
    }
    if (WITHOUT_BODY.has(answer.status) || request.method === 'HEAD') {
      answer.close()
      return new Response(null, { status: answer.status, headers: headersOf(answer.headers) })
    }
    return new Response(streamOf(answer), { status: answer.status, headers: headersOf(answer.headers) })
  }
}

/** Like ReadableStream.from, but cancelling it also ends a pending read. */
function streamOf({ body, close }: Fetched): ReadableStream<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(controller) {
        const next = await chunks.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value)
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  )
}

function headersOf(received: Readonly<Record<string, string | readonly string[] | undefined>>): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(received)) {
    for (const one of Array.isArray(value) ? value : value === undefined ? [] : [value])
      headers.append(name, one as string)
  }
  return headers
}
