/**
 * Answers of a scripted provider: replies, the rules that choose one, and the fragments that a reply is streamed in.
 * Independent of any provider's wire format.
 */

export type Fault =
  /** This status with the dialect's error body: message `errorMessage`, code or type `errorCode`. */
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
  /** An error event instead of the answer. */
  | 'error-event'
  /** The whole answer, but its last event (`[DONE]`, `message_stop`) is left out. */
  | 'no-done'
  /** The same, after this many fragments of the answer: a clean end without finish, a reset, a stall, an error event. */
  | `truncate-after:${number}`
  | `reset-after:${number}`
  | `stall-after:${number}`
  | `error-event-after:${number}`
  /** The provider stops after this many fragments because the limit on output tokens is reached, arguments unfinished. */
  | `length-after:${number}`

export interface Reply {
  /** A list: one event each, written one by one. */
  readonly text?: string | readonly string[]
  /** Comes before the text. */
  readonly reasoning?: string | readonly string[]
  /** `args` as a string is sent unchanged. `id` is generated, unique within a conversation, unless given; '' sends none. */
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown; readonly id?: string }[]
  /** Number of fragments of each call's arguments. Default 1. */
  readonly argPieces?: number
  /** Default: what the dialect bills, which is 10 in and 5 out unless it counts. `false`: none is reported. */
  readonly usage?: UsageReply | false
  /** Default: tool calls where there are some, else the ordinary end. `length` and `content_filter` work in any dialect. */
  readonly finish?: string
  /** Milliseconds between events. */
  readonly delayMs?: number
  /** Awaited after the headers and `holdAfter` events (default 0). */
  readonly hold?: Promise<unknown>
  readonly holdAfter?: number
  readonly fault?: Fault
  readonly errorMessage?: string
  readonly errorCode?: string
  /** Response headers, of errors too: `{'retry-after': '3'}`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Cuts the rendered body into these writes instead of one an event. Each is sent before the next is written. */
  readonly cut?: (body: Buffer) => readonly Buffer[]
  /** These bytes instead of a rendered body. */
  readonly raw?: string | Buffer
}

/** `input` includes cached tokens, read or written. */
export interface UsageReply {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
}

/** One message of a request, as far as rules need it. */
export interface ScriptMessage {
  readonly role: string
  readonly text: string
}

/** A turn's reply; a list: one for each attempt, the last for all further ones. */
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

/** One piece of the answer. */
export interface Fragment {
  readonly kind: 'reasoning' | 'text' | 'args'
  readonly text: string
  /** The first and the last fragment of its block. The last one of a broken answer may be missing. */
  readonly first: boolean
  readonly last: boolean
  /** The call of a fragment of kind `args`. */
  readonly call?: { readonly index: number; readonly name: string; readonly id: string | undefined }
}

/** `callId` names the calls without an id of their own. */
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

/** The first `count` fragments, as an answer that ends there: its last block is closed. */
export function endedAfter(fragments: readonly Fragment[], count: number): Fragment[] {
  return fragments.slice(0, count).map((fragment, i) => (i === count - 1 ? { ...fragment, last: true } : fragment))
}

/** The answer up to so many characters, or undefined where it is no longer than that. */
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
