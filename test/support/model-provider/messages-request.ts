/** Parses Anthropic requests into ordered blocks, and refuses shapes that the API refuses. */
import type { PromptBlock } from './prompt-cache.ts'
import type { Refusal } from './serve.ts'

export interface Block {
  readonly type: string
  readonly text?: unknown
  readonly cache_control?: { readonly type: string; readonly ttl?: '5m' | '1h' } | null
  // biome-ignore lint/suspicious/noExplicitAny: a block of any kind; tests read fields of requests freely
  readonly [field: string]: any
}

export interface MessagesRequest {
  readonly model: string
  readonly max_tokens?: number
  readonly system?: string | readonly Block[]
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[]
  readonly tools?: readonly { readonly name: string; readonly [field: string]: unknown }[]
  readonly thinking?: {
    readonly type?: string
    readonly block_binding?: { readonly prefix_mismatch_behavior: 'error' | 'drop_block' }
  }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly [field: string]: any
}

/** A block with its path: `messages.1.content.0`. */
export interface PlacedBlock extends Block {
  readonly role: string
  readonly path: string
}

/** All blocks of messages in order; a plain string is one text block. */
export function flatten(messages: MessagesRequest['messages']): PlacedBlock[] {
  return messages.flatMap(placed)
}

function placed({ role, content }: MessagesRequest['messages'][number], index: number): PlacedBlock[] {
  return blocksIn(content).map((block, i) => ({ ...block, role, path: `messages.${index}.content.${i}` }))
}

function blocksIn(content: string | readonly Block[] | undefined): readonly Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])
}

/** The turns of a request. Adjacent messages of one role are one turn, as in the API. */
export function turnsOf({ messages }: MessagesRequest): { role: string; blocks: PlacedBlock[]; index: number }[] {
  const turns: { role: string; blocks: PlacedBlock[]; index: number }[] = []
  for (const [index, message] of messages.entries()) {
    const blocks = placed(message, index)
    const last = turns.at(-1)
    if (last?.role === message.role) last.blocks.push(...blocks)
    else turns.push({ role: message.role, blocks, index })
  }
  return turns
}

/** A block as text for comparing prefixes: without cache markers, and independent of the order of fields. */
export function canonical({ role = '', path: _, cache_control: __, ...block }: Partial<PlacedBlock>): string {
  const fields = Object.entries(block).sort(([a], [b]) => (a < b ? -1 : 1))
  return `${role} ${JSON.stringify(fields, (key, value) => (key === 'cache_control' ? undefined : value))}`
}

export function systemBlocks({ system }: MessagesRequest): readonly Block[] {
  return blocksIn(system)
}

const LIFETIMES = { '5m': 5 * 60_000, '1h': 60 * 60_000 }

/** Billed blocks in caching order: tools, system, messages. */
export function promptBlocks(body: MessagesRequest): PromptBlock[] {
  const tools = (body.tools ?? []).map((tool) => ({ ...tool, type: 'tool' }) as Block)
  const blocks = [...tools, ...systemBlocks(body), ...flatten(body.messages)]
  return blocks.map((block, i) => {
    // A marker on the request itself applies to its last block.
    const marker = block.cache_control ?? (i === blocks.length - 1 ? body.cache_control : undefined)
    const lifetime = marker ? { breakpoint: LIFETIMES[(marker.ttl ?? '5m') as '5m' | '1h'] } : {}
    return { text: canonical(block), tokens: tokensOf(block), ...lifetime }
  })
}

function tokensOf(block: Block): number {
  const media = mediaIn(block)
  const data = media.reduce((sum, { source }) => sum + String(source?.data ?? '').length, 0)
  const shown = media.reduce((sum, { type }) => sum + (type === 'image' ? 1000 : 2000), 0)
  return Math.ceil((canonical(block).length - data) / 4) + shown
}

function mediaIn(block: Block): Block[] {
  if (block.type === 'image' || block.type === 'document') return [block]
  return block.type === 'tool_result' && Array.isArray(block.content) ? block.content.flatMap(mediaIn) : []
}

export function shapeRefusal(body: MessagesRequest, maxImages: number): Refusal | undefined {
  const message = emptyText(body) ?? unpaired(body) ?? tooMuchMedia(body, maxImages) ?? tooManyMarkers(body)
  return message === undefined ? undefined : { status: 400, message }
}

function emptyText(body: MessagesRequest): string | undefined {
  const empty = body.messages.findIndex(({ content }) => content.length === 0)
  if (empty >= 0 && empty < body.messages.length - 1) {
    return `messages.${empty}: all messages must have non-empty content except for the optional final assistant message`
  }
  const blank = [...systemBlocks(body), ...flatten(body.messages)].some(
    ({ type, text }) => type === 'text' && text === '',
  )
  return blank ? 'messages: text content blocks must be non-empty' : undefined
}

/**
 * Checks that the results of all calls begin the next turn, and that every result has a call in the previous turn.
 * Returns the error message.
 */
function unpaired(body: MessagesRequest): string | undefined {
  const turns = turnsOf(body)
  const seen = new Set<string>()
  for (const [i, { blocks, index }] of turns.entries()) {
    const next = turns[i + 1]?.blocks ?? []
    const leading = next.slice(0, next.findIndex(({ type }) => type !== 'tool_result') >>> 0)
    const answered = new Set(leading.map(({ tool_use_id }) => tool_use_id))
    const calls = blocks.filter(({ type }) => type === 'tool_use')
    const open = calls.filter(({ id }) => !answered.has(id)).map(({ id }) => id)
    if (open.length > 0) {
      return `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
    }
    for (const { id, path } of calls) {
      if (seen.has(id)) return `${path}: \`tool_use\` ids must be unique`
      seen.add(id)
    }
    const asked = new Set(turns[i - 1]?.blocks.map(({ type, id }) => (type === 'tool_use' ? id : undefined)))
    for (const { type, tool_use_id: id, path } of blocks) {
      if (type !== 'tool_result' || asked.delete(id)) continue
      return `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
    }
  }
  return undefined
}

function tooMuchMedia(body: MessagesRequest, most: number): string | undefined {
  const media = flatten(body.messages).flatMap(mediaIn)
  const images = media.filter(({ type }) => type === 'image').length
  const pages = media.length - images
  return media.length > most ? `Too much media: ${pages} document pages + ${images} images > ${most}` : undefined
}

function tooManyMarkers(body: MessagesRequest): string | undefined {
  const count = promptBlocks(body).filter(({ breakpoint }) => breakpoint !== undefined).length
  return count > 4 ? `A maximum of 4 blocks with cache_control may be provided. Found ${count}.` : undefined
}
