/**
 * One request and its response with undici's `dispatch`: without web streams and without a promise per chunk.
 *
 *     sent → reading → settled → closed
 *
 * The exchange is settled when the outcome is known. After `[DONE]` the last bytes of the body are awaited for a second, so
 * that the connection can be reused. In every other case the connection is closed immediately.
 */
import type { Dispatcher } from 'undici'
import { ABORTED, malformed, stalled, unreachable, type Wording } from './failures.ts'
import type { ChunkReader } from './openai-answer.ts'
import { type BodyReader, chooseReader } from './openai-body.ts'
import type { LimitedOutcome } from './token-limit.ts'

export interface Target {
  readonly dispatcher: Dispatcher
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds without a byte after which the call fails. The time before the first byte counts. */
  readonly idleTimeoutMs: number
  readonly wording: Wording
  readonly now: () => number
}

const DRAIN_MS = 1_000

/** Never rejects. The body stays in memory until the response is complete, shared with undici as bytes. */
export function exchange(
  target: Target,
  body: Uint8Array,
  chunks: ChunkReader,
  signal: AbortSignal,
): Promise<LimitedOutcome> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined
    let reader: BodyReader | undefined
    let settled = false
    let timer = setTimeout(onIdle, target.idleTimeoutMs)

    function settle(outcome: LimitedOutcome, connection: 'close' | 'drain' | 'closed'): void {
      if (settled) return
      settled = true
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      if (connection === 'close') close()
      else if (connection === 'drain') timer = setTimeout(close, DRAIN_MS)
      resolve(outcome)
    }
    function close(): void {
      controller?.abort(new Error('The model call is over.'))
    }
    function onIdle(): void {
      settle({ ok: false, failure: stalled(target.idleTimeoutMs), tokens: chunks.tokens() }, 'close')
    }
    function onAbort(): void {
      settle({ ok: false, failure: ABORTED, tokens: chunks.tokens() }, 'close')
    }

    signal.addEventListener('abort', onAbort)
    if (signal.aborted) return onAbort()

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (started) => {
        controller = started
        if (settled) close()
      },
      onResponseStart: (started, status, headers) => {
        // The raw headers keep their network buffer alive for as long as the response lasts.
        started.rawHeaders = null
        // 1xx: the real response follows.
        if (settled || status < 200) return
        timer.refresh()
        const chosen = chooseReader(status, headers, chunks, target.wording, target.now())
        if ('kind' in chosen) settle({ ok: false, failure: chosen, tokens: undefined }, 'close')
        else reader = chosen
      },
      onResponseData: (_, chunk) => {
        if (settled || !reader) return
        timer.refresh()
        const outcome = reader.push(chunk)
        if (outcome) settle(outcome, outcome.ok ? 'drain' : 'close')
      },
      onResponseEnd: () => {
        if (settled) clearTimeout(timer)
        else settle(reader?.end() ?? noAnswer(), 'closed')
      },
      onResponseError: (_, error) => {
        if (settled) clearTimeout(timer)
        else settle(brokenOff(reader, error), 'closed')
      },
    }
    try {
      const { origin, path, headers } = target
      target.dispatcher.dispatch({ origin, path, method: 'POST', headers, body }, handler)
    } catch (error) {
      settle(brokenOff(undefined, error as Error), 'closed')
    }
  })
}

function brokenOff(reader: BodyReader | undefined, error: Error & { code?: string }): LimitedOutcome {
  const failure = unreachable(error.code)
  if (!reader) return { ok: false, failure, tokens: undefined }
  return reader.broken({ ...failure, kind: 'truncated', message: brokenMessage(error.code) })
}

function brokenMessage(code: string | undefined): string {
  return `The connection to the model provider broke off in the middle of its answer${code ? ` (${code})` : ''}.`
}

function noAnswer(): LimitedOutcome {
  return { ok: false, failure: malformed('is empty'), tokens: undefined }
}
