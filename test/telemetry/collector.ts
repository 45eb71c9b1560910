/** An OpenTelemetry collector for a test. It accepts OTLP over HTTP and keeps the spans that arrive as JSON. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly attributes: Readonly<Record<string, unknown>>
  /** OTLP `status.code`: 0 is unset, 2 is error. */
  readonly status: number
  readonly startNs: bigint
  readonly endNs: bigint
  /** Resource attributes of the sender. */
  readonly resource: Readonly<Record<string, unknown>>
}

export interface Collector {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Received requests. */
  readonly requests: readonly { readonly headers: IncomingHttpHeaders; readonly url: string; readonly body: Buffer }[]
  close(): Promise<void>
}

/** Opens a collector. With `mute`, it accepts requests and never responds. */
export async function openCollector({ mute = false } = {}): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const requests: { headers: IncomingHttpHeaders; url: string; body: Buffer }[] = []
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    requests.push({ headers: request.headers, url: request.url ?? '', body })
    if (mute) return
    if (request.headers['content-type'] === 'application/json') spans.push(...readSpans(JSON.parse(body.toString())))
    response.writeHead(200, { 'content-type': request.headers['content-type'] }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: OTLP as JSON; assertions check its type.
function readSpans(message: any): ReceivedSpan[] {
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  return message.resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    scopeSpans.flatMap(({ spans }: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      spans.map((span: any) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId || undefined,
        name: span.name,
        kind: span.kind,
        attributes: readAttributes(span.attributes),
        status: span.status?.code ?? 0,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        resource: readAttributes(resource.attributes),
      })),
    ),
  )
}

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean } & {
  arrayValue?: { values: Value[] }
}

function readAttributes(list: readonly { key: string; value: Value }[]): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, readValue(value)]))
}

function readValue({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): unknown {
  return arrayValue
    ? arrayValue.values.map(readValue)
    : (stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? undefined : Number(intValue)))
}
