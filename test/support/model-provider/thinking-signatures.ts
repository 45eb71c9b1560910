/**
 * Signatures of thinking blocks. As in Claude's API since August 2026, a signature covers everything before the block:
 * system prompt, tools and all earlier messages, without cache markers. A block with another prefix is refused, or
 * dropped if the request allows it (`thinking.block_binding`). Leaving out the first blocks is allowed; leaving out or
 * moving a block between others is not. Blocks of another model are ignored.
 */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { canonical, flatten, type MessagesRequest, type PlacedBlock, systemBlocks } from './messages-request.ts'
import type { Refusal } from './serve.ts'

interface Signed {
  readonly model: string
  readonly thinking: string
  readonly system: string
  readonly tools: string
  readonly messages: string
  /** Hash of the previous thinking block's signature. */
  readonly previous: string
}

const BETA = 'thinking-binding-controls-2026-08-01'

/** Returns a function that signs the thinking blocks of one answer, in order. Text and calls follow the thinking. */
export function createSigner(body: MessagesRequest, dropped: readonly string[] = []): (thinking: string) => string {
  const blocks = flatten(body.messages)
  const last = blocks.findLast(({ type, path }) => type === 'thinking' && !dropped.includes(path))
  let previous = hash([last?.signature ?? ''])
  return (thinking) => {
    const signed: Signed = { ...prefixOf(body, blocks), model: body.model, thinking: hash([thinking]), previous }
    const signature = Buffer.from(JSON.stringify(signed)).toString('base64')
    previous = hash([signature])
    return signature
  }
}

/** Checks all signatures of a request. `dropped`: paths of blocks that are hidden from the model. */
export function checkSignatures(
  body: MessagesRequest,
  headers: IncomingHttpHeaders,
): Refusal | { readonly dropped: readonly string[] } {
  const blocks = flatten(body.messages)
  const dropped: string[] = []
  let previous: string | undefined
  for (const [i, block] of blocks.entries()) {
    if (block.type !== 'thinking') continue
    const signed = read(block.signature)
    if (!signed) return refusal(`${block.path}: Invalid \`signature\` in \`thinking\` block`)
    if (signed.model !== body.model) {
      dropped.push(block.path)
      continue
    }
    if (signed.thinking !== hash([block.thinking])) return refusal(modified(block.path))
    const mismatch = mismatchOf(signed, prefixOf(body, blocks.slice(0, i)), previous)
    if (mismatch && !dropsBlocks(body, headers)) return refusal(bound(block.path, mismatch))
    if (mismatch) dropped.push(block.path)
    else previous = hash([block.signature])
  }
  return { dropped }
}

type Prefix = Pick<Signed, 'system' | 'tools' | 'messages'>

/** Hashes of what a signature covers. Other thinking blocks are not included, because their signatures are chained. */
function prefixOf(body: MessagesRequest, before: readonly PlacedBlock[]): Prefix {
  return {
    system: hash(systemBlocks(body).map(canonical)),
    tools: hash((body.tools ?? []).map((tool) => canonical(tool))),
    messages: hash(before.filter(({ type }) => type !== 'thinking').map(canonical)),
  }
}

function mismatchOf(signed: Signed, now: Prefix, previous: string | undefined): string | undefined {
  if (signed.system !== now.system) return 'The `system` prompt differs'
  if (signed.tools !== now.tools) return 'The `tools` differ'
  if (signed.messages !== now.messages) return 'An earlier message differs'
  return previous !== undefined && signed.previous !== previous ? 'An earlier thinking block differs' : undefined
}

function dropsBlocks({ thinking }: MessagesRequest, headers: IncomingHttpHeaders): boolean {
  const allowed = String(headers['anthropic-beta'] ?? '').includes(BETA)
  return allowed && thinking?.block_binding?.prefix_mismatch_behavior === 'drop_block'
}

function bound(path: string, mismatch: string): string {
  return `${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block". That setting requires the \`${BETA}\` value in the \`anthropic-beta\` header. ${mismatch} from the one this block was created with.`
}

function modified(path: string): string {
  return `${path}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`
}

function refusal(message: string): Refusal {
  return { status: 400, message }
}

function read(signature: unknown): Signed | undefined {
  try {
    return JSON.parse(Buffer.from(String(signature), 'base64').toString()) as Signed
  } catch {
    return undefined
  }
}

function hash(texts: readonly string[]): string {
  const digest = createHash('sha256')
  for (const text of texts) digest.update(text).update('\0')
  return digest.digest('base64').slice(0, 16)
}
