/** One request through the proxy: forwards it on a connection that is already open, and masks credentials in the response. */
import { type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createMask, decoderOf, type Mask } from './mask.ts'
import type { Pipe } from './pipe.ts'
import type { InjectedCredential } from './port.ts'
import { endToEnd, Refusal } from './proxy-messages.ts'

/** Maximum size of a message's header, in both directions. */
export const MAX_HEADER_BYTES = 64 * 1024
/** Fields that request parts of a response. They are dropped: a secret that comes back in parts could not be masked. */
const PARTIAL = ['range', 'if-range']

/** Forwards the request, once, and returns the response. */
export async function exchange(
  pipe: Pipe,
  request: IncomingMessage,
  response: ServerResponse,
  upstream: Duplex,
  { host, pathname, search }: URL,
  { headers, confidential }: InjectedCredential,
): Promise<void> {
  const mask = confidential.length > 0 ? createMask(confidential) : undefined
  const chunked = request.headers['transfer-encoding'] !== undefined
  // RFC 9112, 3.2.2: the host is that of the URL, whatever the Host field says.
  const own = {
    host,
    ...headers,
    // A secret in a compressed response could not be masked.
    ...(mask && { 'accept-encoding': 'identity' }),
    ...(chunked && { 'transfer-encoding': 'chunked' }),
    connection: 'close',
  }
  pipe.count(upstream)
  const onward = send({
    createConnection: () => upstream,
    method: request.method,
    path: pathname + search,
    setHost: false,
    headers: endToEnd(request.rawHeaders, own, mask ? PARTIAL : []),
    maxHeaderSize: MAX_HEADER_BYTES,
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    onward.once('response', resolve)
    onward.once('error', reject)
    // An unrequested upgrade closes the connection without an event of its own.
    onward.once('close', () => reject(new Refusal(502, `${host} closed the connection without a response.`)))
  })
  // Fails if the response comes before the whole request was read, which is not an error.
  pipeline(request, onward).catch(() => onward.destroy())
  const received = await answered
  if (mask) return sendMasked(pipe, received, response, mask)
  response.writeHead(received.statusCode!, received.statusMessage, endToEnd(received.rawHeaders, {}))
  await pipeline(received, response)
}

/** Masks secrets in a response. One that is compressed anyway is decompressed first, or refused if that is impossible. */
async function sendMasked(pipe: Pipe, received: IncomingMessage, response: ServerResponse, mask: Mask): Promise<void> {
  const { statusCode: status = 502, statusMessage = '', rawHeaders } = received
  const coding = received.headers['content-encoding'] ?? 'identity'
  const isPlain = coding === 'identity' || response.req.method === 'HEAD' || status === 204 || status === 304
  const decoder = isPlain ? undefined : decoderOf(coding)
  if (!isPlain && !decoder) {
    received.destroy()
    throw new Refusal(502, 'the response has a compression that can’t be inspected.')
  }
  // The original length is wrong after masking, and would reveal the secret's length.
  const fields = endToEnd(rawHeaders, {}, ['content-length', ...(decoder ? ['content-encoding'] : [])])
  response.writeHead(status, mask.text(statusMessage), fields.map(mask.text))
  const steps = decoder ? [decoder, pipe.meter(), mask.stream()] : [mask.stream()]
  await pipeline([received, ...steps, response])
}
