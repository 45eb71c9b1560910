/**
 * A scripted model provider: a real HTTP server that answers in one provider's wire format (a `Dialect`). Tests and
 * benches run the whole product against it. The product cannot distinguish it from a real provider.
 *
 *     const provider = await openFakeProvider()        // or openFakeAnthropic(), openFakeOpenAi(), openFakeGemini()
 *     provider.script({ text: 'Hello.' })                                  // the next call, of any conversation
 *     provider.when('[sum]',                                               // conversations with `[sum]` in a user message:
 *       { toolCalls: [{ name: 'code_execution', args: { code: '…' } }] },  //   the first turn,
 *       { text: ['The sum ', 'is 4.'] })                                   //   the second, after the tool's result
 *     provider.when(/flaky/, [{ fault: 'status:503' }, { text: 'ok' }])    // one turn, its first and its second attempt
 *     provider.when(/any/, (request) => ({ text: request.body.model }))    // a single function: every turn
 *     … models: { m: provider.model }, environment: provider.env …
 *     await provider.close()
 *
 * How a reply is chosen:
 * - First the rules of `when`, newest first. A rule applies if a user message contains or matches it.
 * - The newest matching message counts. The number of assistant messages after it selects the turn. So any number of
 *   interactions can run at the same time, each with its own marker in the instruction.
 * - If no rule applies, the next reply in the queue of `script`.
 * - If the queue is empty, or the rule has no more turns, a 400 with an explanation, which no client retries.
 *
 * A request that the dialect refuses uses no reply.
 *
 * Bodies of a stateless dialect are rendered once for each reply and turn: fast enough for a benchmark (`record: false`
 * keeps no requests).
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createFaults, type SeededFaults } from './faults.ts'
import {
  createScript,
  endedAfter,
  type Fragment,
  fragmentsOf,
  type Reply,
  type ScriptMessage,
  type Turn,
  type UsageReply,
} from './script.ts'

export interface RecordedRequest<Body> {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Body
  /** Resolves when the response ends: complete, or closed early by the client or a fault. */
  readonly ended: Promise<'finished' | 'closed'>
  /** Error message if the dialect refused the request. */
  readonly refused?: string
  /** Billed tokens of the prompt, if the dialect counts them. */
  readonly billed?: Billed
  /** Paths of thinking blocks that were dropped because they no longer match (`messages.1.content.0`). */
  readonly dropped?: readonly string[]
}

/** Billed tokens of one prompt. */
export interface Billed {
  readonly uncached: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

export interface Refusal {
  readonly status: number
  readonly message: string
  readonly code?: string
}

/** Results of the dialect's check of an accepted request. */
export interface Admission {
  readonly billed?: Billed
  readonly dropped?: readonly string[]
  /** Text of the final assistant message, which the answer must continue. */
  readonly prefill?: string
}

/** An answer as bytes. `parts` has one buffer for each fragment. */
export interface Rendered {
  readonly head: readonly Buffer[]
  readonly parts: readonly Buffer[]
  readonly tail: readonly Buffer[]
  /** The last event. */
  readonly done: readonly Buffer[]
}

export interface Answer<Body> {
  readonly body: Body
  readonly admission: Admission
  readonly fragments: readonly Fragment[]
  readonly finish: string
  readonly usage: UsageReply | false | undefined
}

/** One provider's wire format and rules. */
export interface Dialect<Body> {
  /**
   * An entry of `models` in the configuration, without its base URL. `env` has the environment variables that it needs.
   */
  readonly model: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  /** Path of the base URL. */
  readonly base: string
  /** True if an answer depends only on the reply and the turn. */
  readonly stateless: boolean
  serves(path: string): boolean
  /** Answers GET requests. Undefined is a 404. */
  get?(path: string): object | undefined
  messages(body: Body): readonly ScriptMessage[]
  admit?(body: Body, headers: IncomingHttpHeaders): Admission | Refusal
  /** Cuts the answer at the request's limit. Undefined if it fits, or if the dialect has no limit. */
  cut?(body: Body, fragments: readonly Fragment[]): Fragment[] | undefined
  callId(turn: number, index: number): string
  render(answer: Answer<Body>): Rendered
  /** The same answer as one JSON object. */
  whole(answer: Answer<Body>): object
  errorBody(refusal: Refusal): object
  /** An error event in a stream. */
  errorEvent(error: { readonly message: string; readonly code: string | undefined }): Buffer
}

export interface ModelProvider<Body> {
  /** The base URL. */
  readonly url: string
  readonly port: number
  /** An entry of `models` in the configuration. */
  readonly model: Readonly<Record<string, string>>
  /** Environment variables that the entry needs. */
  readonly env: Readonly<Record<string, string>>
  /** Recorded requests, in order of arrival. */
  readonly requests: RecordedRequest<Body>[]
  /** Resolves with request number `n` (from 1) as soon as it has arrived. */
  received(n: number): Promise<RecordedRequest<Body>>
  /** Queues replies for calls that no rule of `when` matches. */
  script(...replies: Reply[]): void
  when(match: string | RegExp, ...turns: Turn<RecordedRequest<Body>>[]): void
  /** Removes all rules, queued replies and recorded requests. */
  reset(): void
  /** Closes the server and all connections, also stalled ones. */
  close(): Promise<void>
}

export interface ServeOptions {
  readonly port?: number
  readonly record?: boolean
  /** Breaks a share of the calls, chosen by seed. */
  readonly faults?: SeededFaults
}

export async function serveDialect<Body>(
  dialect: Dialect<Body>,
  { port: wanted = 0, record = true, faults }: ServeOptions = {},
): Promise<ModelProvider<Body>> {
  const script = createScript<RecordedRequest<Body>>()
  const requests: RecordedRequest<Body>[] = []
  const waiting: { n: number; resolve: (request: RecordedRequest<Body>) => void }[] = []
  const renderOnce = memoize(dialect)
  const withFault = faults && createFaults(faults)

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (incoming.url ?? '').replace(/\?.*/, '')
    if (incoming.method === 'GET') return sendJson(response, dialect.get?.(path))
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    if (incoming.method !== 'POST' || !dialect.serves(path)) return void response.writeHead(404).end()
    const text = Buffer.concat(chunks).toString()
    const body = JSON.parse(text) as Body
    const admitted = dialect.admit?.(body, incoming.headers) ?? {}
    const refusal = 'status' in admitted ? admitted : undefined
    const admission: Admission = 'status' in admitted ? {} : admitted
    const request: RecordedRequest<Body> = {
      url: incoming.url ?? '',
      headers: incoming.headers,
      body,
      ended: record ? endOf(response) : Promise.resolve('finished'),
      ...(refusal && { refused: refusal.message }),
      billed: admission.billed,
      dropped: admission.dropped,
    }
    if (record) {
      requests.push(request)
      for (const { n, resolve } of waiting) if (n === requests.length) resolve(request)
    }
    if (refusal) return sendError(dialect, {}, refusal, response)
    const messages = dialect.messages(body)
    const turn = messages.filter(({ role }) => role === 'assistant').length
    const chosen = script.choose(messages, request)
    const reply = withFault ? withFault(chosen, text) : chosen
    await answer(dialect, renderOnce, { reply, body, admission, turn }, response)
  }

  const server = createServer((incoming, response) => {
    // In many tests the client disconnects during the response.
    serve(incoming, response).catch((error) => response.destroy(error))
  })
  server.listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}${dialect.base}`

  return {
    url,
    port,
    model: { ...dialect.model, baseUrl: url },
    env: dialect.env ?? {},
    requests,
    received: (n) =>
      requests[n - 1] ? Promise.resolve(requests[n - 1]!) : new Promise((resolve) => waiting.push({ n, resolve })),
    script: script.script,
    when: script.when,
    reset: () => {
      script.reset()
      requests.length = 0
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function endOf(response: ServerResponse): Promise<'finished' | 'closed'> {
  return new Promise((resolve) =>
    response.once('close', () => resolve(response.writableFinished ? 'finished' : 'closed')),
  )
}

function sendJson(response: ServerResponse, body: object | undefined): void {
  if (!body) return void response.writeHead(404).end()
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
}

interface Call<Body> {
  readonly reply: Reply
  readonly body: Body
  readonly admission: Admission
  /** Number of assistant messages before the answer. */
  readonly turn: number
}
type Render<Body> = (call: Call<Body>) => readonly Buffer[]

async function answer<Body>(
  dialect: Dialect<Body>,
  render: Render<Body>,
  call: Call<Body>,
  response: ServerResponse,
): Promise<void> {
  const { reply } = call
  const [fault, count] = splitFault(reply.fault)
  if (fault === 'reset' && count === undefined) return void response.socket?.resetAndDestroy()
  if (fault === 'stall' && count === undefined) return
  if (fault === 'status') {
    const { errorMessage: message = `Fake trouble ${count}.`, errorCode: code } = reply
    return sendError(dialect, reply, { status: count!, message, code }, response)
  }
  const type = fault === 'html' ? 'text/html' : fault === 'json' ? 'application/json' : 'text/event-stream'
  response.writeHead(200, { 'content-type': type, ...reply.headers })
  const writes = render(call)
  if (!reply.delayMs && !reply.hold && !reply.cut && fault !== 'reset' && fault !== 'stall') {
    for (let i = 0; i < writes.length - 1; i++) response.write(writes[i]!)
    return void response.end(writes.at(-1))
  }
  response.flushHeaders()
  for (const [i, write] of writes.entries()) {
    if (reply.hold && i === (reply.holdAfter ?? 0)) await reply.hold
    if (reply.delayMs && i > 0) await delay(reply.delayMs)
    if (response.destroyed) return
    await new Promise((sent) => response.write(write, sent))
    if (reply.cut) await delay(1)
  }
  if (fault === 'reset') response.socket?.resetAndDestroy()
  else if (fault !== 'stall') response.end()
}

function splitFault(fault: Reply['fault']): [string | undefined, number | undefined] {
  const [kind, count] = fault?.split(':') ?? []
  return [kind?.replace(/-after$/, ''), count === undefined ? undefined : Number(count)]
}

function sendError(dialect: Dialect<never>, reply: Reply, refusal: Refusal, response: ServerResponse): void {
  response.writeHead(refusal.status, { 'content-type': 'application/json', ...reply.headers })
  response.end(reply.raw ?? JSON.stringify(dialect.errorBody(refusal)))
}

/** Renders a reply into writes. Cached by reply and turn if the dialect is stateless. */
function memoize<Body>(dialect: Dialect<Body>): Render<Body> {
  const rendered = new WeakMap<Reply, Map<number, readonly Buffer[]>>()
  const render = (call: Call<Body>) => {
    const writes = renderWrites(dialect, call)
    return call.reply.cut ? call.reply.cut(Buffer.concat(writes)) : writes
  }
  if (!dialect.stateless) return render
  return (call) => {
    const turns = rendered.get(call.reply) ?? new Map<number, readonly Buffer[]>()
    rendered.set(call.reply, turns)
    const writes = turns.get(call.turn) ?? render(call)
    turns.set(call.turn, writes)
    return writes
  }
}

/** Writes of a reply. Never empty. */
function renderWrites<Body>(dialect: Dialect<Body>, { reply, body, admission, turn }: Call<Body>): Buffer[] {
  const [fault, count] = splitFault(reply.fault)
  if (reply.raw !== undefined) return [Buffer.from(reply.raw)]
  if (fault === 'html') return [Buffer.from('<!doctype html><title>Fake gateway</title><p>Not an API.')]
  const said: Reply = fault === 'empty' ? {} : continued(reply, admission.prefill)
  const all = fragmentsOf(said, (index) => dialect.callId(turn, index))
  const limited =
    fault === 'length' ? endedAfter(all, count!) : count === undefined ? dialect.cut?.(body, all) : undefined
  const fragments = limited ?? (count === undefined ? all : all.slice(0, count))
  const finish = limited ? 'length' : (reply.finish ?? (said.toolCalls?.length ? 'tool_calls' : 'stop'))
  const answer = { body, admission, fragments, finish, usage: reply.usage }
  if (fault === 'json') return [Buffer.from(JSON.stringify(dialect.whole(answer)))]
  const { head, parts, tail, done } = dialect.render(answer)
  if (fault === 'error-event') {
    const error = dialect.errorEvent({ message: reply.errorMessage ?? 'Fake trouble.', code: reply.errorCode })
    return [...(count === undefined ? [] : [...head, ...parts]), error]
  }
  if (fault === 'garbage') return [...head, ...parts, Buffer.from('data: {"choices": [oops\n\n')]
  // A clean end needs a last write, even if there were no others.
  if (count !== undefined && fault !== 'length') return [...head, ...parts, Buffer.from(': end\n\n')]
  return [...head, ...parts, ...tail, ...(fault === 'no-done' ? [] : done)]
}

/**
 * Removes the prefill from the beginning of a reply's text, as a model continues after it. A reply that does not begin
 * with the prefill is the continuation itself.
 */
function continued(reply: Reply, prefill: string | undefined): Reply {
  const texts = typeof reply.text === 'string' ? [reply.text] : (reply.text ?? [])
  if (!prefill || !texts.join('').startsWith(prefill)) return reply
  let skip = prefill.length
  const rest = texts.flatMap((text) => {
    const left = text.slice(skip)
    skip = Math.max(0, skip - text.length)
    return left === '' ? [] : [left]
  })
  return { ...reply, text: rest, reasoning: undefined }
}
