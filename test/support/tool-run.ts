/**
 * Runs one interaction whose scripted model makes tool calls, turn by turn, and then answers `Done.`. Returns the
 * outputs of the calls.
 */
import { randomUUID } from 'node:crypto'
import type { FakeProvider } from '../fake-provider.ts'
import type { Answer, Server } from './server.ts'

export interface Call {
  readonly name: string
  /** Arguments of the call. A string is sent unchanged, so it can be invalid JSON. */
  readonly args: unknown
}

export interface ToolRun {
  readonly answer: Answer
  /** The interaction, or the error body. */
  readonly body: Answer['body']
  /** Outputs of the calls, in the order of the trace. */
  readonly outputs: readonly string[]
}

export type ToolRunner = (turns: readonly (Call | readonly Call[])[], request?: object) => Promise<ToolRun>

export const ALL_TOOLS = ['code_execution', 'file_read', 'file_write']

export const python = (code: string): Call => ({ name: 'code_execution', args: { code } })
export const bash = (code: string): Call => ({ name: 'code_execution', args: { language: 'bash', code } })
export const javascript = (code: string): Call => ({ name: 'code_execution', args: { language: 'javascript', code } })
export const readFile = (path: unknown, more: object = {}): Call => ({ name: 'file_read', args: { path, ...more } })
export const writeFile = (path: unknown, content: unknown, more: object = {}): Call => ({
  name: 'file_write',
  args: { path, content, ...more },
})

/**
 * Scripts these calls, one turn for each item; the calls of a list are one turn. Returns the instruction that triggers
 * them.
 */
export function scripted(provider: FakeProvider, turns: readonly (Call | readonly Call[])[]): string {
  const marker = `[${randomUUID()}]`
  const replies = turns.map((turn) => ({ toolCalls: 'name' in turn ? [turn] : turn }))
  provider.when(marker, ...replies, { text: 'Done.' })
  return marker
}

export function toolRunner(server: () => Server, provider: () => FakeProvider): ToolRunner {
  return async (turns, request = {}) => {
    const instruction = scripted(provider(), turns)
    const answer = await server().post('/v1beta/interactions', { instruction, tools: ALL_TOOLS, ...request })
    return { answer, body: answer.body, outputs: outputsOf(answer.body?.executionTrace ?? []) }
  }
}

export function outputsOf(trace: readonly { readonly type: string; readonly output?: string }[]): string[] {
  return trace.filter(({ type }) => type === 'tool_result').map(({ output }) => output ?? '')
}
