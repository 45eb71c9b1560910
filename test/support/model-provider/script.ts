/**
 * Replies of a scripted provider, the rules that choose one, and the fragments in which a reply is streamed.
 * Independent of the wire format.
 */

export type Fault =
  /** This HTTP status with an error body: its message is `errorMessage`, its code or type `errorCode`. */
  | `status:${number}`
  /** Resets the connection before the response. */
  | 'reset'
  /** Never responds. The connection stays open. */
  | 'stall'
  /** Status 200 with an HTML page. */
  | 'html'
  /** Status 200 with one JSON object, like a server that does not stream. */
  | 'json'
  /** An event that is not JSON, after the fragments. */
  | 'garbage'
  /** An error event instead of the answer. */
  | 'error-event'
  /** A normal end without any output. */
  | 'empty'
  /** The whole answer without its last event (`[DONE]`, `message_stop`). */
  | 'no-done'
  /**
   * After this many fragments of the answer: a clean end without a finish reason, a reset, a stall, or an error event.
   */
  | `truncate-after:${number}`
  | `reset-after:${number}`
  | `stall-after:${number}`
  | `error-event-after:${number}`
  /** After this many fragments, the answer ends because of the output limit. Arguments may be unfinished. */
  | `length-after:${number}`

export interface Reply {
  /** Text of the answer. Each item of a list is one event. */
  readonly text?: string | readonly string[]
  /** Reasoning before the text. */
  readonly reasoning?: string | readonly string[]
  /**
   * Tool calls. A string in `args` is sent unchanged. `id` defaults to one that is unique in the conversation; '' omits
   * it.
   */
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown; readonly id?: string }[]
  /** Number of fragments of each call's arguments. Default 1. */
  readonly argPieces?: number
  /**
   * Reported usage. Default: the dialect's count, or 10 input and 5 output tokens if it does not count. `false` reports
   * none.
   */
  readonly usage?: UsageReply | false
  /**
   * Finish reason. Default: tool calls if there are any, otherwise a normal end. All dialects know `length` and
   * `content_filter`.
   */
  readonly finish?: string
  /** Delay between events in milliseconds. */
  readonly delayMs?: number
  /** Awaited after the headers and `holdAfter` events (default 0). */
  readonly hold?: Promise<unknown>
  readonly holdAfter?: number
  readonly fault?: Fault
  readonly errorMessage?: string
  readonly errorCode?: string
  /** Response headers, also of errors: `{'retry-after': '3'}`. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Splits the rendered body into writes. Default: one for each event. Each write is sent before the next one starts.
   */
  readonly cut?: (body: Buffer) => readonly Buffer[]
  /** Bytes to send instead of a rendered body. */
  readonly raw?: string | Buffer
}

/** Reported usage. `input` includes cached tokens, both read and written. */
export interface UsageReply {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
}

/** A message of a request, with the fields that rules need. */
export interface ScriptMessage {
  readonly role: string
  readonly text: string
}

/** The reply to a turn. A list has one reply for each attempt; its last one is repeated. */
export type Turn<Request> = Reply | readonly Reply[] | ((request: Request) => Reply)

export interface Script<Request> {
  script(...replies: Reply[]): void
  when(match: string | RegExp, ...turns: Turn<Request>[]): void
  choose(messages: readonly ScriptMessage[], request: Request): Reply
  reset(): void
}

interface Rule<Request> {
  readonly match: string | RegExp
  readonly turns: readonly Turn<Request>[]
  readonly attempts: Map<number, number>
}

export function createScript<Request>(): Script<Request> {
  const rules: Rule<Request>[] = []
  const queue: Reply[] = []

  function choose(messages: readonly ScriptMessage[], request: Request): Reply {
    for (const rule of rules) {
      const at = messages.findLastIndex(({ role, text }) => role === 'user' && matches(rule.match, text))
      if (at < 0) continue
      const turn = messages.slice(at).filter(({ role }) => role === 'assistant').length
      const [only] = rule.turns
      const chosen = rule.turns.length === 1 && typeof only === 'function' ? only : rule.turns[turn]
      if (chosen === undefined) return unscripted(`the rule ${rule.match} has no turn ${turn + 1}`)
      if (typeof chosen === 'function') return chosen(request)
      if (!isList(chosen)) return chosen
      const attempt = rule.attempts.get(turn) ?? 0
      rule.attempts.set(turn, attempt + 1)
      return chosen[Math.min(attempt, chosen.length - 1)]!
    }
    return queue.shift() ?? unscripted('no rule matches and the queue is empty')
  }

  return {
    script: (...replies) => void queue.push(...replies),
    when: (match, ...turns) => void rules.unshift({ match, turns, attempts: new Map() }),
    choose,
    reset: () => {
      rules.length = queue.length = 0
    },
  }
}

function matches(match: string | RegExp, text: string): boolean {
  return typeof match === 'string' ? text.includes(match) : match.test(text)
}

function isList(turn: Reply | readonly Reply[]): turn is readonly Reply[] {
  return Array.isArray(turn)
}

function unscripted(why: string): Reply {
  return { fault: 'status:400', errorMessage: `fake provider: ${why}` }
}

/** A fragment of the answer. */
export interface Fragment {
  readonly kind: 'reasoning' | 'text' | 'args'
  readonly text: string
  /** True for the first and the last fragment of a block. A broken answer may lack the last one. */
  readonly first: boolean
  readonly last: boolean
  /** Call of a fragment of kind `args`. */
  readonly call?: { readonly index: number; readonly name: string; readonly id: string | undefined }
}

/** Splits a reply into fragments. `callId` returns ids for calls without one. */
export function fragmentsOf(reply: Reply, callId: (index: number) => string): Fragment[] {
  const { toolCalls = [], argPieces = 1 } = reply
  return [
    ...blockOf('reasoning', listOf(reply.reasoning)),
    ...blockOf('text', listOf(reply.text)),
    ...toolCalls.flatMap(({ name, args, id }, index) => {
      const call = { index, name, id: id === '' ? undefined : (id ?? callId(index)) }
      const text = typeof args === 'string' ? args : JSON.stringify(args)
      return blockOf('args', inPieces(text, argPieces)).map((fragment) => ({ ...fragment, call }))
    }),
  ]
}

function blockOf(kind: Fragment['kind'], texts: readonly string[]): Fragment[] {
  return texts.map((text, i) => ({ kind, text, first: i === 0, last: i === texts.length - 1 }))
}

function inPieces(text: string, count: number): string[] {
  const size = Math.ceil(text.length / count) || 1
  return Array.from({ length: Math.max(1, Math.ceil(text.length / size)) }, (_, i) =>
    text.slice(i * size, (i + 1) * size),
  )
}

function listOf(fragments: string | readonly string[] | undefined): readonly string[] {
  return fragments === undefined ? [] : typeof fragments === 'string' ? [fragments] : fragments
}

/** The first `count` fragments, with the last block closed, as in an answer that ends there. */
export function endedAfter(fragments: readonly Fragment[], count: number): Fragment[] {
  return fragments.slice(0, count).map((fragment, i) => (i === count - 1 ? { ...fragment, last: true } : fragment))
}

/** The answer cut after `characters` characters. Undefined if it is not longer. */
export function cutAtCharacters(fragments: readonly Fragment[], characters: number): Fragment[] | undefined {
  let left = characters
  for (const [i, fragment] of fragments.entries()) {
    if (fragment.text.length > left) {
      const cut = { ...fragment, text: fragment.text.slice(0, left), last: true }
      return [...fragments.slice(0, i), cut]
    }
    left -= fragment.text.length
  }
  return undefined
}
