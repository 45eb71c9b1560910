/**
 * Requests of each side for a run, and checks that its answer is complete: the tool's call, its result, all 40
 * fragments, and the end.
 */
import type { Dispatcher } from 'undici'
import { request } from 'undici'
import { runOpencode } from './opencode-run.ts'

export const FRAGMENTS = 40
/** Number of fragments of a held answer before it pauses: more than the 240 characters of a turn that Errand holds back. */
export const HELD_AT = 30

export interface Target {
  readonly url: string
  readonly key?: string
  /** Errand's: what the run may use. */
  readonly tools?: readonly string[]
  readonly skills?: readonly string[]
}

export interface Asked extends Target {
  readonly dispatcher: Dispatcher
  readonly instruction: string
  /** First event that shows output of the model: the tool call. */
  readonly onFirst: () => void
  /** HELD_AT fragments are here. */
  readonly onHeld?: () => void
}

/** Returns what was wrong; undefined where the answer is whole. */
export type Run = (asked: Asked) => Promise<string | undefined>

/** A run that is one POST and the stream that answers it. */
interface Streamed {
  readonly path: string
  readonly body: (asked: Asked) => object
  readonly first: RegExp
  /** Each must be in a whole answer. */
  readonly whole: readonly string[]
}

const STREAMED = {
  bare: {
    path: '/',
    body: ({ instruction }) => ({ instruction }),
    first: /event: tool_call/,
    whole: ['event: tool_result', '"status":"completed"'],
  },
  errand: {
    path: '/v1beta/interactions:stream',
    body: ({ instruction, tools = [], skills }) => ({ instruction, tools, ...(skills && { skills }) }),
    first: /event: (tool_call|reasoning_started)/,
    whole: ['event: tool_result', '"status":"completed"'],
  },
  mastra: {
    path: '/api/agents/agent/stream',
    body: ({ instruction }) => ({ messages: [{ role: 'user', content: instruction }] }),
    first: /"type":"tool-call/,
    whole: ['"type":"tool-result"', '"type":"finish"'],
  },
  voltagent: {
    path: '/agents/agent/stream',
    body: ({ instruction }) => ({ input: instruction }),
    first: /"type":"tool-(input|call)/,
    whole: ['"type":"tool-result"', '"type":"finish"'],
  },
  langgraph: {
    path: '/runs/stream',
    body: ({ instruction }) => ({
      assistant_id: 'agent',
      input: { messages: [{ role: 'user', content: instruction }] },
      stream_mode: ['messages-tuple'],
    }),
    first: /"tool_call_chunks":\[\{/,
    whole: ['"type":"tool"'],
  },
} satisfies Record<string, Streamed>

export const DIALECTS = {
  ...(Object.fromEntries(Object.entries(STREAMED).map(([name, of]) => [name, streamed(of)])) as Record<
    keyof typeof STREAMED,
    Run
  >),
  opencode: async (asked: Asked) => {
    const text = await runOpencode(asked)
    return hasAll(text) && text.includes('"finish":"stop"') ? undefined : text.slice(0, 1_000)
  },
} satisfies Record<string, Run>

export type DialectName = keyof typeof DIALECTS

function streamed({ path, body, first, whole }: Streamed): Run {
  return async (asked) => {
    const { url, key, dispatcher, onFirst, onHeld } = asked
    const answer = await request(url + path, {
      dispatcher,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        ...(key && { 'x-svc-api-key': key }),
      },
      body: JSON.stringify(body(asked)),
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    let text = ''
    let begun = false
    let held = onHeld === undefined
    for await (const bytes of answer.body) {
      text += bytes
      if (!begun && first.test(text)) {
        begun = true
        onFirst()
      }
      if (!held && text.includes(`fragment ${HELD_AT - 1} `)) {
        held = true
        onHeld!()
      }
    }
    if (answer.statusCode === 200 && begun && whole.every((part) => text.includes(part)) && hasAll(text))
      return undefined
    return `${answer.statusCode} ${text.slice(0, 1_000)} … ${text.slice(-500)}`
  }
}

/** Whether every fragment is in it; some tell each more than once. */
function hasAll(text: string): boolean {
  return new Set(text.match(/fragment \d+ /g)).size === FRAGMENTS
}
