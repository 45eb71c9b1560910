/**
 * The conversation of a run as its log has it: messages, and the edits that shortened the model's view of them. Folding both
 * gives the messages that the model gets. The log keeps everything that an edit leaves out.
 */
import { countCharacters, type Message, type ToolMessage, type UserMessage, userText } from './message.ts'
import { withoutNewMedia } from './view.ts'

/** A message, or an edit of the messages before it. */
export type Entry = Message | ContextEdit

/** `keep` counts messages from the end of the list before the edit: they stay unchanged. */
export type ContextEdit =
  /** The instruction of a run. Compaction keeps it in full. */
  | { readonly edit: 'instruction'; readonly message: UserMessage }
  /** The provider counted `tokens` for the request that the last message answered and for that message. */
  | { readonly edit: 'measured'; readonly tokens: number }
  /** Older tool results were shortened. */
  | { readonly edit: 'cleared'; readonly keep: number }
  /** The provider refused the media of the newest results. */
  | { readonly edit: 'media_refused' }
  /** Older messages were replaced by a summary; undefined: by a note that they are gone. `window` is in tokens. */
  | { readonly edit: 'compacted'; readonly keep: number; readonly window: number; readonly summary?: string }

/** A request's size as its provider counted it. */
export interface Measured {
  readonly tokens: number
  /** Characters of the messages then. */
  readonly characters: number
}

export interface FoldedContext {
  messages(): readonly Message[]
  /** Characters of the messages. For estimates. */
  characters(): number
  /** The last measured size. Undefined before the first call. */
  measured(): Measured | undefined
  add(...entries: readonly Entry[]): void
  /** The messages after an edit that is not made. `tail`: messages at the end that the edit does not see. */
  preview(edit: ContextEdit, tail?: number): readonly Message[]
  /** Makes an edit of the messages before the last `tail` ones. */
  edit(edit: ContextEdit, tail: number): void
}

export function foldContext(entries: readonly Entry[]): FoldedContext {
  let messages: Message[] = []
  let characters = 0
  let instruction: UserMessage | undefined
  let measured: Measured | undefined

  function preview(edit: ContextEdit, tail = 0): readonly Message[] {
    const at = messages.length - tail
    return [...editedMessages(messages.slice(0, at), edit, instruction), ...messages.slice(at)]
  }

  function push(message: Message): void {
    messages.push(message)
    characters += countCharacters([message])
  }

  function add(entry: Entry): void {
    if (!('edit' in entry)) push(entry)
    else if (entry.edit === 'measured') measured = { tokens: entry.tokens, characters }
    else if (entry.edit === 'instruction') {
      instruction = entry.message
      push(entry.message)
    } else replace(preview(entry))
  }

  function replace(edited: readonly Message[]): void {
    messages = [...edited]
    characters = countCharacters(messages)
  }

  for (const entry of entries) add(entry)
  return {
    messages: () => messages,
    characters: () => characters,
    measured: () => measured,
    add: (...added) => added.forEach(add),
    preview,
    edit: (edit, tail) => replace(preview(edit, tail)),
  }
}

function editedMessages(
  messages: readonly Message[],
  edit: ContextEdit,
  instruction: UserMessage | undefined,
): readonly Message[] {
  if (edit.edit === 'media_refused') return withoutNewMedia(messages) ?? messages
  if (edit.edit !== 'cleared' && edit.edit !== 'compacted') return messages
  const from = Math.max(0, messages.length - edit.keep)
  const kept = messages.slice(from)
  if (edit.edit === 'cleared') return [...messages.slice(0, from).map(clearedResult), ...kept]
  const task = instruction && !kept.includes(instruction) ? instruction : undefined
  return [replacement(edit, task), ...kept]
}

/** Results of these tools are instructions that stay valid. */
const NEVER_CLEARED = new Set(['skill'])
/** Characters that stay of a cleared result at its beginning and end: enough to know what it was. */
const HEAD = 240
const TAIL = 120

/**
 * The message as `cleared` shows it: its beginning and end, and how to get the rest. Idempotent. Results that would not become
 * much shorter stay.
 */
export function clearedResult(message: Message): Message {
  if (message.role !== 'tool' || NEVER_CLEARED.has(message.name)) return message
  const { media, ...result } = message
  const output = excerpt(message)
  return media || message.output.length > 2 * output.length ? { ...result, output } : message
}

function excerpt({ output, file }: ToolMessage): string {
  if (output.length <= HEAD + TAIL)
    return `${output}\n[Images and documents were removed to make room. Read them again if you need them.]`
  const again = file === undefined ? 'Run the call again' : `Read ${file}`
  const left = output.length - HEAD - TAIL
  const mark = `[… ${left} characters of this output were removed to make room. ${again} if you need them. …]`
  return `${output.slice(0, HEAD)}\n${mark}\n${output.slice(-TAIL)}`
}

const DROPPED =
  '[The earlier messages of this conversation were removed to make room, and could not be summarized. Look at the files and ' +
  'run calls again for what you need. Do not invent what was there.]'

/** The message that takes the place of the older ones. Its share of the window bounds the instruction. */
function replacement(
  { summary, window }: Extract<ContextEdit, { edit: 'compacted' }>,
  instruction: UserMessage | undefined,
): UserMessage {
  const rest =
    summary === undefined
      ? DROPPED
      : `[The earlier messages of this conversation were replaced by this summary to make room. Continue from it; what it says is done need not be done again.]\n\n${summary}`
  if (!instruction) return userText(rest)
  const text = instruction.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  return userText(`${withinCharacters(text, window)}\n\n${rest}`)
}

/** The text with its middle left out if it is longer than `most` characters. */
export function withinCharacters(text: string, most: number): string {
  if (text.length <= most) return text
  const mark = `\n[… ${text.length - most} characters left out …]\n`
  const half = Math.max(0, Math.floor(most / 2))
  return text.slice(0, half) + mark + text.slice(text.length - half)
}

/**
 * Number of messages before `entries` that their fold needs. `needed`: the number that later entries need of these and the
 * earlier ones together.
 */
export function earlierNeeded(entries: readonly Entry[], needed = Number.POSITIVE_INFINITY): number {
  let own = 0
  for (const entry of entries) {
    if (!('edit' in entry) || entry.edit === 'instruction') own++
    else if (entry.edit === 'compacted') return Math.max(0, entry.keep - own)
  }
  return Math.max(0, needed - own)
}

/** The whole request for a summary, sent after the conversation. `instructions` are the caller's. */
export function summaryRequest(instructions: string | undefined): UserMessage {
  return userText(instructions ? `${SUMMARIZE}\n\nIn addition: ${instructions}` : SUMMARIZE)
}

const SUMMARIZE = `The conversation no longer fits your context window. Its older messages will be replaced by the summary that you write now; after that you continue the task with the summary, the original instruction and the latest messages alone. Reply with the summary only. Do not call tools and do not answer the task.

Write down, as exactly as needed to continue without the older messages:
- Goal: what the task is, and what counts as done.
- Constraints: what was required, excluded or agreed on.
- Decisions: what was decided and why; what was tried and failed.
- Facts: names, figures, identifiers, addresses and quotations that were found. Copy them exactly.
- Files: the path of each file that was read, created or changed, and its state.
- Open items: what is unfinished, and the next step.
If the conversation begins with an earlier summary, keep what is still valid of it.`
