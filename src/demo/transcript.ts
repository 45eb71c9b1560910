/** A model request as the demo model reads it: the instruction, the files, and the outputs of its own calls. */
import { type Message, toolCalls, type UserMessage } from '../domain/message.ts'
import type { ModelRequest } from '../models/port.ts'

export interface Transcript {
  readonly instruction: string
  /** Names of the input files. */
  readonly files: readonly string[]
  /** Outputs of the tool calls since the instruction, in the order of the calls. */
  readonly outputs: readonly string[]
  /** Tool calls in the whole conversation: numbers the next one. */
  readonly calls: number
  readonly tools: ReadonlySet<string>
}

/** The list of input files that the engine writes into the user's message. */
const FILE_LIST = /^Files in the working directory:[ \t]*\n((?:[ \t]*- .*(?:\n|$))+)/m

/** The date that the engine writes there. */
const DATE = /^Today is \d{4}-\d\d-\d\d \(UTC\)\.$/m

export function readTranscript({ messages, tools }: ModelRequest): Transcript {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const last = messages[at]
  return {
    ...(last?.role === 'user' ? readUser(last) : { instruction: '', files: [] }),
    outputs: outputsOf(messages.slice(at + 1)),
    calls: messages.flatMap((message) => (message.role === 'assistant' ? toolCalls(message) : [])).length,
    tools: new Set(tools.map((tool) => tool.name)),
  }
}

function readUser(message: UserMessage): { readonly instruction: string; readonly files: readonly string[] } {
  const text = message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  const list = FILE_LIST.exec(text)?.[1] ?? ''
  const files = list.split('\n').flatMap((line) => fileIn(line.trim()))
  return { instruction: text.replace(FILE_LIST, '').replace(DATE, '').trim(), files }
}

/** `- name (12 bytes)` */
function fileIn(line: string): string[] {
  if (!line.startsWith('- ')) return []
  const about = line.endsWith(')') ? line.lastIndexOf(' (') : -1
  const name = line.slice(2, about > 2 ? about : undefined).trimEnd()
  return name === '' ? [] : [name]
}

function outputsOf(messages: readonly Message[]): string[] {
  const outputs = new Map<string, string>()
  for (const message of messages) if (message.role === 'tool') outputs.set(message.callId, message.output)
  return messages
    .flatMap((message) => (message.role === 'assistant' ? toolCalls(message) : []))
    .flatMap((call) => outputs.get(call.callId) ?? [])
}
