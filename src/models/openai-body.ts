/**
 * Readers for the three kinds of response to `POST /chat/completions`: an event stream, one JSON object from a server that
 * does not stream, and an error. Each has a size limit.
 */
import type { IncomingHttpHeaders } from 'undici/types/header.js'
import { answeredWith, malformed, parseErrorBody, TRUNCATED, type Wording } from './failures.ts'
import type { ChunkReader } from './openai-answer.ts'
import type { ModelFailure } from './port.ts'
import { readRetryAfter } from './retry.ts'
import { createSseParser } from './sse.ts'
import type { LimitedOutcome } from './token-limit.ts'

export interface BodyReader {
  /** Returns an outcome if the call is over, even if more bytes follow. */
  push(chunk: Buffer): LimitedOutcome | undefined
  end(): LimitedOutcome
  /** Called if the connection breaks. `failure` is the outcome if the answer is not complete. */
  broken(failure: ModelFailure): LimitedOutcome
}

const MAX_EVENT_BYTES = 8 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024

/** Chooses a reader by status and headers. Returns a failure if no reader fits. */
export function chooseReader(
  status: number,
  headers: IncomingHttpHeaders,
  chunks: ChunkReader,
  wording: Wording,
  now: number,
): BodyReader | ModelFailure {
  if (status !== 200) return readError(status, readRetryAfter(headers, now), wording)
  const type = String(headers['content-type'] ?? '')
    .split(';', 1)[0]!
    .trim()
    .toLowerCase()
  if (type === 'text/event-stream' || type === '') return readEvents(chunks)
  if (type === 'application/json') return readWhole(chunks)
  return malformed(`is ${JSON.stringify(type.slice(0, 80))}, not an event stream`)
}

function readEvents(chunks: ChunkReader): BodyReader {
  let outcome: LimitedOutcome | undefined
  let ended = false
  const fail = (failure: ModelFailure): LimitedOutcome => ({ ok: false, failure, tokens: chunks.tokens() })
  const parser = createSseParser((data) => {
    if (outcome) return
    if (data === '[DONE]') outcome = chunks.outcome(true)
    else {
      const failure = takeEvent(data, chunks, ended)
      if (failure) outcome = fail(failure)
    }
  }, MAX_EVENT_BYTES)
  return {
    push: (chunk) => {
      if (!parser.push(chunk)) outcome ??= fail(malformed('holds an event of more than 8 MiB'))
      return outcome
    },
    end: () => {
      ended = true
      parser.end()
      return outcome ?? chunks.outcome(false)
    },
    // After the finish reason, nothing of the answer is missing.
    broken: (failure) => {
      const sofar = chunks.outcome(false)
      return sofar.ok ? sofar : fail(failure)
    },
  }
}

/** `last`: the event may be truncated by the end of the stream. */
function takeEvent(data: string, chunks: ChunkReader, last: boolean): ModelFailure | undefined {
  let chunk: unknown
  try {
    chunk = JSON.parse(data)
  } catch {
    return last ? TRUNCATED : malformed('holds an event that is no JSON')
  }
  return chunks.take(chunk)
}

function readWhole(chunks: ChunkReader): BodyReader {
  const body = collect(MAX_EVENT_BYTES)
  return {
    push: (chunk) =>
      body.push(chunk)
        ? undefined
        : { ok: false, failure: malformed('is a JSON body of more than 8 MiB'), tokens: undefined },
    end: () => {
      const failure = takeEvent(body.text(), chunks, false)
      return failure ? { ok: false, failure, tokens: undefined } : chunks.outcome(true)
    },
    broken: (failure) => ({ ok: false, failure, tokens: undefined }),
  }
}

function readError(status: number, retryAfterMs: number | undefined, wording: Wording): BodyReader {
  const body = collect(MAX_ERROR_BYTES)
  const outcome = (): LimitedOutcome => {
    const providerError = parseErrorBody(body.text())
    const failure = answeredWith(status, providerError, wording)
    return { ok: false, failure, tokens: undefined, retryAfterMs, providerError }
  }
  return {
    push: (chunk) => (body.push(chunk) ? undefined : outcome()),
    end: outcome,
    broken: outcome,
  }
}

/** Collects bytes up to a limit. `push` returns false beyond it. */
function collect(maxBytes: number): { push(chunk: Buffer): boolean; text(): string } {
  const chunks: Buffer[] = []
  let bytes = 0
  return {
    push: (chunk) => {
      chunks.push(chunk.subarray(0, Math.max(0, maxBytes - bytes)))
      bytes += chunk.length
      return bytes <= maxBytes
    },
    text: () => Buffer.concat(chunks).toString('utf8'),
  }
}
