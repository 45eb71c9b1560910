/** Explains errors of MCP servers in a sentence. Quotes the server's own message, truncated. Never includes an address. */
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from '@modelcontextprotocol/client'
import { EgressError } from '../../egress/port.ts'
import { SandboxError } from '../../sandbox/port.ts'
import { SignInRefused } from './sign-in.ts'
import { ProgramError } from './transport.ts'

const MAX_QUOTED_CHARS = 1_000

export interface Failure {
  readonly sentence: string
  /** The request may have had an effect. */
  readonly unknown: boolean
}

export function explainFailure(error: unknown, timeoutMs: number): Failure {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const found = explainOne(cause, timeoutMs)
    if (found) return found
  }
  return { sentence: 'The connection to the server broke.', unknown: true }
}

function explainOne(error: Error, timeoutMs: number): Failure | undefined {
  if (error instanceof SignInRefused) return known(error.message)
  if (error instanceof UnauthorizedError) return known('The server refused the sign-in.')
  if (error instanceof EgressError) return { sentence: error.message, unknown: error.code !== 'refused' }
  if (error instanceof ProgramError) return known(`The program’s error output: ${quote(error.message)}`)
  if (error instanceof SandboxError) return known(error.message)
  if (error instanceof SdkHttpError) return explainStatus(error)
  if (error instanceof ProtocolError) {
    return known(`The server answered with an error (${error.code}): ${quote(error.message)}`)
  }
  if (!(error instanceof SdkError)) return undefined
  if (error.code === SdkErrorCode.RequestTimeout) {
    return { sentence: `The server gave no answer within ${Math.round(timeoutMs / 1_000)} s.`, unknown: true }
  }
  return { sentence: `The server violated the protocol: ${quote(error.message)}`, unknown: true }
}

function explainStatus({ status, data }: SdkHttpError): Failure {
  const text = (data as { text?: string | null } | undefined)?.text
  if (status === 401 || status === 403) return known(`The server refused the sign-in (HTTP ${status}).`)
  if (status !== undefined && status >= 300 && status < 400) {
    return known(
      'The server redirects to another address. Redirects are not followed, because a token is sent only to its own origin.',
    )
  }
  const detail = text ? `: ${quote(text)}` : '.'
  return {
    sentence: `The server answered with HTTP ${status}${detail}`,
    unknown: status !== undefined && status >= 500,
  }
}

function known(sentence: string): Failure {
  return { sentence, unknown: false }
}

function quote(text: string): string {
  return text.length > MAX_QUOTED_CHARS ? `${text.slice(0, MAX_QUOTED_CHARS)}…` : text
}
