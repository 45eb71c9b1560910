/**
 * A fake model provider: OpenAI's chat completions as server-sent events, on a real socket, by script. Tests and benches
 * drive the whole product against it; nothing in the product knows that it is not a real one.
 *
 *     const provider = await openFakeProvider()
 *     provider.script({ text: 'Hello.' })                                  // the next call, whoever makes it
 *     provider.when('[sum]',                                               // conversations with `[sum]` in a user message:
 *       { toolCalls: [{ name: 'code_execution', args: { code: '…' } }] },  //   the first turn,
 *       { text: ['The sum ', 'is 4.'] })                                   //   the second, after the tool's result
 *     provider.when(/flaky/, [{ fault: 'status:503' }, { text: 'ok' }])    // one turn, its first and its second try
 *     provider.when(/any/, (request) => ({ text: `${request.body.messages.length} messages` }))   // alone: every turn
 *     … baseUrl: provider.url …
 *     await provider.close()
 *
 * Which reply: the rules of `when` are asked first, the newest first. A rule holds where a user message matches (a string
 * is looked for as it is); the newest matching message counts, and the number of assistant messages behind it is the
 * turn. So any number of interactions can run at the same time, each with a marker in its instruction. Without a rule the
 * queue of `script` is next. Without either, or past a rule's last turn, the answer is 400 with a message that says so,
 * which no client tries again.
 *
 * Bodies are rendered once a reply and turn, then only written: fast enough to stand behind a benchmark (`record: false`
 * keeps no requests).
 */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

export type Fault =
  /** That status with an error body: `{error: {message: errorMessage, code: errorCode}}`. */
  | `status:${number}`
  /** The connection is reset before anything is answered. */
  | 'reset'
  /** Nothing is ever answered; the connection stays open. */
  | 'stall'
  /** 200, and an HTML page. */
  | 'html'
  /** 200, and one JSON object: a server that does not stream. */
  | 'json'
  /** An event that is no JSON, after the fragments. */
  | 'garbage'
  /** `{"error": …}` as an event, instead of the answer. */
  | 'error-event'
  /** The whole answer, but `[DONE]` is left out. */
  | 'no-done'
  /** The same, behind this many fragments of the answer: a clean end without finish, a reset, a stall, an error event. */
  | `truncate-after:${number}`
  | `reset-after:${number}`
  | `stall-after:${number}`
  | `error-event-after:${number}`

export interface Reply {
  /** A list: one event each, written one by one. */
  readonly text?: string | readonly string[]
  /** As `reasoning_content`, before the text. */
  readonly reasoning?: string | readonly string[]
  /** `args` as a string is sent as it is. `id` is made up, unique within a conversation, unless given; '' sends none. */
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown; readonly id?: string }[]
  /** How many pieces each call's arguments come in. Default 1. */
  readonly argPieces?: number
  /** Default: 10 in, 5 out. `false`: none is reported. */
  readonly usage?: UsageReply | false
  /** Default: `tool_calls` where there are some, else `stop`. */
  readonly finish?: string
  /** Milliseconds between events. */
  readonly delayMs?: number
  /** Awaited after the headers and `holdAfter` events (default 0). */
  readonly hold?: Promise<unknown>
  readonly holdAfter?: number
  readonly fault?: Fault
  readonly errorMessage?: string
  readonly errorCode?: string
  /** Of the answer, errors included: `{'retry-after': '3'}`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Cuts the rendered body into these writes instead of one an event. Each is sent before the next is written. */
  readonly cut?: (body: Buffer) => readonly Buffer[]
  /** These bytes instead of a rendered body. */
  readonly raw?: string | Buffer
}

export interface UsageReply {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly reasoning?: number
}

export interface RecordedRequest {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: ChatRequest
  /** How the answer ended: all was sent, or the client (or a fault) closed the connection before. */
  readonly ended: Promise<'finished' | 'closed'>
}

export interface ChatRequest {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
  readonly [field: string]: unknown
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string | null | readonly { readonly type: string; readonly text?: string }[]
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[]
  readonly tool_call_id?: string
}

/** A turn's reply; a list: try by try, the last for all further ones. */
export type Turn = Reply | readonly Reply[] | ((request: RecordedRequest) => Reply)

export interface FakeProvider {
  /** The base URL: ends with `/v1`. */
  readonly url: string
  readonly port: number
  /** In order of arrival. */
  readonly requests: RecordedRequest[]
  /** Resolves with request number `n`, from 1, once it is there. */
  received(n: number): Promise<RecordedRequest>
  /** Replies to the next calls that no rule of `when` answers. */
  script(...replies: Reply[]): void
  when(match: string | RegExp, ...turns: Turn[]): void
  /** Forgets rules, queue and requests. */
  reset(): void
  /** Closes all connections, stalled ones too. */
  close(): Promise<void>
}

export interface FakeProviderOptions {
  readonly port?: number
  /** What `GET /v1/models` lists. */
  readonly models?: readonly { readonly id: string; readonly owned_by?: string }[]
  readonly record?: boolean
}

interface Rule {
  readonly match: string | RegExp
  readonly turns: readonly Turn[]
  readonly tries: Map<number, number>
}

export async function openFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const { models = [{ id: 'fake', owned_by: 'fake' }], record = true } = options
  const rules: Rule[] = []
  const queue: Reply[] = []
  const requests: RecordedRequest[] = []
  const waiting: { n: number; resolve: (request: RecordedRequest) => void }[] = []

  function choose(request: RecordedRequest): Reply {
    const { messages } = request.body
    for (const rule of rules) {
      const at = messages.findLastIndex((message) => message.role === 'user' && matches(rule.match, textOf(message)))
      if (at < 0) continue
      const turn = messages.slice(at).filter((message) => message.role === 'assistant').length
      const chosen = answersAll(rule) ? rule.turns[0] : rule.turns[turn]
      if (chosen === undefined) return unscripted(`the rule ${rule.match} has no turn ${turn + 1}`)
      if (typeof chosen === 'function') return chosen(request)
      if (!isList(chosen)) return chosen
      const tries = rule.tries.get(turn) ?? 0
      rule.tries.set(turn, tries + 1)
      return chosen[Math.min(tries, chosen.length - 1)]!
    }
    return queue.shift() ?? unscripted('no rule matches and the queue is empty')
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    if (incoming.method === 'GET' && incoming.url === '/v1/models') {
      const data = models.map(({ id, owned_by = 'fake' }) => ({ id, object: 'model', owned_by }))
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify({ object: 'list', data }))
    }
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const path = (incoming.url ?? '').replace(/\?.*/, '')
    if (incoming.method !== 'POST' || !path.endsWith('/chat/completions')) {
      return void response.writeHead(404).end()
    }
    const request: RecordedRequest = {
      url: incoming.url ?? '',
      headers: incoming.headers,
      body: JSON.parse(Buffer.concat(chunks).toString()),
      ended: record
        ? new Promise((resolve) =>
            response.once('close', () => resolve(response.writableFinished ? 'finished' : 'closed')),
          )
        : Promise.resolve('finished'),
    }
    if (record) {
      requests.push(request)
      for (const { n, resolve } of waiting) if (n === requests.length) resolve(request)
    }
    await answer(choose(request), request, response)
  }

  const server = createServer((incoming, response) => {
    // A client that goes away in the middle is what many tests are about.
    serve(incoming, response).catch((error) => response.destroy(error))
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    received: (n) =>
      requests[n - 1] ? Promise.resolve(requests[n - 1]!) : new Promise((resolve) => waiting.push({ n, resolve })),
    script: (...replies) => void queue.push(...replies),
    when: (match, ...turns) => void rules.unshift({ match, turns, tries: new Map() }),
    reset: () => {
      rules.length = queue.length = requests.length = 0
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function answersAll({ turns }: Rule): boolean {
  return turns.length === 1 && typeof turns[0] === 'function'
}

function matches(match: string | RegExp, text: string): boolean {
  return typeof match === 'string' ? text.includes(match) : match.test(text)
}

function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n')
}

function isList(turn: Reply | readonly Reply[]): turn is readonly Reply[] {
  return Array.isArray(turn)
}

function unscripted(why: string): Reply {
  return { fault: 'status:400', errorMessage: `fake provider: ${why}` }
}

async function answer(reply: Reply, { body }: RecordedRequest, response: ServerResponse): Promise<void> {
  const [fault, count] = splitFault(reply.fault)
  if (fault === 'reset' && count === undefined) return void response.socket?.resetAndDestroy()
  if (fault === 'stall' && count === undefined) return
  if (fault === 'status') return sendError(reply, count!, response)
  const turn = body.messages.filter((message) => message.role === 'assistant').length
  const type = fault === 'html' ? 'text/html' : fault === 'json' ? 'application/json' : 'text/event-stream'
  response.writeHead(200, { 'content-type': type, ...reply.headers })
  const writes = render(reply, turn)
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

function splitFault(fault: Fault | undefined): [string | undefined, number | undefined] {
  const [kind, count] = fault?.split(':') ?? []
  return [kind?.replace(/-after$/, ''), count === undefined ? undefined : Number(count)]
}

function sendError(reply: Reply, status: number, response: ServerResponse): void {
  const { errorMessage = `Fake trouble ${status}.`, errorCode = null } = reply
  response.writeHead(status, { 'content-type': 'application/json', ...reply.headers })
  response.end(reply.raw ?? JSON.stringify({ error: { message: errorMessage, code: errorCode } }))
}

const rendered = new WeakMap<Reply, Map<number, readonly Buffer[]>>()

/** The writes of a reply in this turn. Never empty. */
function render(reply: Reply, turn: number): readonly Buffer[] {
  const turns = rendered.get(reply) ?? new Map<number, readonly Buffer[]>()
  rendered.set(reply, turns)
  let writes = turns.get(turn)
  if (!writes) {
    writes = renderWrites(reply, turn)
    if (reply.cut) writes = reply.cut(Buffer.concat(writes))
    turns.set(turn, writes)
  }
  return writes
}

function renderWrites(reply: Reply, turn: number): Buffer[] {
  const [fault, count] = splitFault(reply.fault)
  if (reply.raw !== undefined) return [Buffer.from(reply.raw)]
  if (fault === 'html') return [Buffer.from('<!doctype html><title>Fake gateway</title><p>Not an API.')]
  if (fault === 'json') return [Buffer.from(JSON.stringify(wholeAnswer(reply, turn)))]
  const fragments = fragmentsOf(reply, turn).map((delta) => event({ choices: [{ index: 0, delta }] }))
  const shown = count === undefined ? fragments : fragments.slice(0, count)
  const failure = { message: reply.errorMessage ?? 'Fake trouble.', code: reply.errorCode ?? 'server_error' }
  if (fault === 'error-event') return [...(count === undefined ? [] : shown), event({ error: failure })]
  if (fault === 'garbage') return [...shown, Buffer.from('data: {"choices": [oops\n\n')]
  // A clean end needs a last write, even after nothing.
  if (count !== undefined) return [...shown, Buffer.from(': end\n\n')]
  const usage = usageOf(reply)
  return [
    ...shown,
    event({ choices: [{ index: 0, delta: {}, finish_reason: finishOf(reply) }] }),
    ...(usage ? [event({ choices: [], usage })] : []),
    ...(fault === 'no-done' ? [] : [Buffer.from('data: [DONE]\n\n')]),
  ]
}

function event(chunk: Record<string, unknown>): Buffer {
  const head = { id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 0, model: 'fake' }
  return Buffer.from(`data: ${JSON.stringify({ ...head, ...chunk })}\n\n`)
}

function fragmentsOf(reply: Reply, turn: number): Record<string, unknown>[] {
  return [
    ...listOf(reply.reasoning).map((fragment) => ({ reasoning_content: fragment })),
    ...listOf(reply.text).map((fragment) => ({ content: fragment })),
    ...callsOf(reply, turn).flatMap((call, index) => {
      const { arguments: args, name } = call.function
      const size = Math.ceil(args.length / (reply.argPieces ?? 1)) || 1
      const pieces = Array.from({ length: Math.max(1, Math.ceil(args.length / size)) }, (_, i) =>
        args.slice(i * size, (i + 1) * size),
      )
      return pieces.map((piece, i) => ({
        tool_calls: [
          i === 0
            ? { index, id: call.id, type: 'function', function: { name, arguments: piece } }
            : { index, function: { arguments: piece } },
        ],
      }))
    }),
  ]
}

function wholeAnswer(reply: Reply, turn: number): Record<string, unknown> {
  const calls = callsOf(reply, turn)
  const message = {
    role: 'assistant',
    content: listOf(reply.text).join('') || null,
    ...(reply.reasoning ? { reasoning_content: listOf(reply.reasoning).join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
  const choices = [{ index: 0, message, finish_reason: finishOf(reply) }]
  return { id: 'chatcmpl-fake', object: 'chat.completion', created: 0, model: 'fake', choices, usage: usageOf(reply) }
}

function callsOf({ toolCalls = [] }: Reply, turn: number) {
  return toolCalls.map(({ name, args, id }, i) => ({
    id: id === '' ? undefined : (id ?? `call_${turn}_${i}`),
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }))
}

function listOf(fragments: string | readonly string[] | undefined): readonly string[] {
  return fragments === undefined ? [] : typeof fragments === 'string' ? [fragments] : fragments
}

function finishOf(reply: Reply): string {
  return reply.finish ?? (reply.toolCalls?.length ? 'tool_calls' : 'stop')
}

function usageOf({ usage = { input: 10, output: 5 } }: Reply): Record<string, unknown> | undefined {
  if (usage === false) return undefined
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  }
}
