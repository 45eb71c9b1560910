/** A model request as the demo model sees it: the instruction, the files, and what its own calls have brought so far. */
import { type Message, toolCalls, type UserMessage } from '../../domain/message.ts'
import type { ModelRequest } from '../port.ts'
import type { InputFile } from './task.ts'

export interface Transcript {
  readonly instruction: string
  readonly files: readonly InputFile[]
  /** Instructions of earlier turns, oldest first. */
  readonly earlier: readonly string[]
  /** Outputs of the tool calls since the instruction, in order. */
  readonly outputs: readonly string[]
  /** Tool calls in the whole conversation: numbers the next one. */
  readonly calls: number
  readonly tools: ReadonlySet<string>
}

/** What the engine writes above the list of input files in the user's message. */
const FILE_LIST = /^Files in the working directory:[ \t]*\n((?:[ \t]*- .*(?:\n|$))+)/m

export function readTranscript(request: ModelRequest): Transcript {
  const users = request.messages.flatMap((message, at) => (message.role === 'user' ? [{ message, at }] : []))
  const last = users.at(-1)
  const said = last ? readUser(last.message) : { instruction: '', files: [] }
  const since = request.messages.slice(last ? last.at + 1 : 0)
  return {
    ...said,
    earlier: users.slice(0, -1).map(({ message }) => readUser(message).instruction),
    outputs: outputsOf(since),
    calls: request.messages.reduce(
      (sum, message) => sum + (message.role === 'assistant' ? toolCalls(message).length : 0),
      0,
    ),
    tools: new Set(request.tools.map((tool) => tool.name)),
  }
}

function readUser(message: UserMessage): { readonly instruction: string; readonly files: readonly InputFile[] } {
  const text = message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  const list = FILE_LIST.exec(text)?.[1] ?? ''
  const files = list.split('\n').flatMap((line) => fileOf(line.trim()))
  return { instruction: text.replace(FILE_LIST, '').trim(), files }
}

/** `- name (about it)` */
function fileOf(line: string): InputFile[] {
  if (!line.startsWith('- ')) return []
  const about = line.endsWith(')') ? line.lastIndexOf(' (') : -1
  const name = line.slice(2, about > 2 ? about : undefined).trimEnd()
  return name === '' ? [] : [{ name }]
}

/** In the order of the calls, whatever order the results came in. */
function outputsOf(messages: readonly Message[]): string[] {
  const outputs = new Map<string, string>()
  for (const message of messages) if (message.role === 'tool') outputs.set(message.callId, message.output)
  return messages
    .flatMap((message) => (message.role === 'assistant' ? toolCalls(message) : []))
    .flatMap((call) => outputs.get(call.callId) ?? [])
}
