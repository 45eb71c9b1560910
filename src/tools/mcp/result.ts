/**
 * Converts an MCP server's answer for the model: text, images and PDFs if the model accepts them, and descriptions of
 * everything else. The answer may be of any kind. The engine truncates the text.
 */
import type {
  CallToolResult,
  ContentBlock,
  EmbeddedResource,
  GetPromptResult,
  ReadResourceResult,
} from '@modelcontextprotocol/client'
import type { MediaPart } from '../../domain/message.ts'
import type { ToolOutcome } from '../port.ts'

export interface ResultLimits {
  /** The model accepts images. */
  readonly vision: boolean
  /** The model accepts whole PDFs. */
  readonly documents: boolean
  /** The result is for code. */
  readonly forCode?: boolean
}

const MAX_MEDIA = 8
/** Maximum length of one in base64. Providers accept about 5 MB. */
const MAX_MEDIA_CHARS = 6_000_000
const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const MAX_BLOCKS = 1_000

export function toOutcome(result: CallToolResult, limits: ResultLimits): ToolOutcome {
  const { structuredContent } = result
  if (limits.forCode && structuredContent !== undefined && !result.isError)
    return { output: JSON.stringify(structuredContent), isJson: true }
  const writer = createWriter(limits)
  if (result.isError) writer.add('The tool reports an error:')
  const content = result.content ?? []
  for (const block of content.slice(0, MAX_BLOCKS)) writer.block(block)
  if (content.length > MAX_BLOCKS) writer.add(`[${content.length - MAX_BLOCKS} more parts left out]`)
  // Most servers repeat structured content as text. Without text it is the only content.
  if (structuredContent !== undefined && !content.some((block) => block.type === 'text')) {
    writer.add(JSON.stringify(structuredContent))
  }
  const outcome = writer.outcome(result.isError || limits.forCode ? '' : 'The tool returned no content.')
  return result.isError ? { ...outcome, failed: true } : outcome
}

export function fromResource(result: ReadResourceResult, limits: ResultLimits): ToolOutcome {
  const writer = createWriter(limits)
  for (const resource of result.contents.slice(0, MAX_BLOCKS)) writer.block({ type: 'resource', resource })
  return writer.outcome('The resource is empty.')
}

export function fromPrompt(result: GetPromptResult, limits: ResultLimits): ToolOutcome {
  const writer = createWriter(limits)
  if (result.description) writer.add(result.description)
  for (const { role, content } of result.messages.slice(0, MAX_BLOCKS)) {
    writer.add(`${role}:`)
    writer.block(content)
  }
  return writer.outcome('The prompt is empty.')
}

function createWriter({ vision, documents }: ResultLimits) {
  const lines: string[] = []
  const media: MediaPart[] = []

  function image(mimeType: string, base64: string): void {
    const size = describeBytes(base64)
    if (!vision) lines.push(`[image, ${mimeType}, ${size}: this model can't see images]`)
    else if (!IMAGE_TYPES.has(mimeType)) lines.push(`[image, ${mimeType}, ${size}: models can't see this format]`)
    else if (base64.length > MAX_MEDIA_CHARS) lines.push(`[image, ${mimeType}, ${size}: too large to be shown]`)
    else if (media.length === MAX_MEDIA) lines.push(`[image, ${mimeType}, ${size}: more than ${MAX_MEDIA}, left out]`)
    else {
      media.push({ type: 'image', mimeType, base64 })
      lines.push(`[image ${media.length}, ${mimeType}]`)
    }
  }

  function resource({ resource: it }: Pick<EmbeddedResource, 'resource'>): void {
    if ('text' in it) lines.push(`[resource ${it.uri}${it.mimeType ? `, ${it.mimeType}` : ''}]\n${it.text}`)
    else if (it.mimeType?.startsWith('image/')) {
      lines.push(`[resource ${it.uri}]`)
      image(it.mimeType, it.blob)
    } else if (documents && isPdf(it) && it.blob.length <= MAX_MEDIA_CHARS && media.length < MAX_MEDIA) {
      media.push({
        type: 'document',
        mimeType: it.mimeType,
        base64: it.blob,
        name: it.uri.split('/').at(-1) || 'document.pdf',
      })
      lines.push(`[resource ${it.uri}, a PDF, attached]`)
    } else lines.push(`[resource ${it.uri}, ${it.mimeType ?? 'binary'}, ${describeBytes(it.blob)}: not text]`)
  }

  return {
    add(text: string): void {
      lines.push(text)
    },
    block(block: ContentBlock): void {
      switch (block.type) {
        case 'text':
          lines.push(block.text)
          return
        case 'image':
          image(block.mimeType, block.data)
          return
        case 'audio':
          lines.push(`[audio, ${block.mimeType}, ${describeBytes(block.data)}: audio is not supported]`)
          return
        case 'resource':
          resource(block)
          return
        case 'resource_link': {
          const about = [block.mimeType, block.description].filter(Boolean).join(', ')
          lines.push(`[link to the resource ${block.name}: ${block.uri}${about && `, ${about}`}]`)
          return
        }
        default:
          lines.push(`[content of type ${JSON.stringify((block as { type?: unknown }).type)}: not shown]`)
      }
    },
    outcome(empty: string): ToolOutcome {
      const output = lines.join('\n') || empty
      return media.length > 0 ? { output, media } : { output }
    },
  }
}

function isPdf<T extends { readonly mimeType?: string }>(it: T): it is T & { mimeType: string } {
  return it.mimeType === 'application/pdf'
}

function describeBytes(base64: string): string {
  return `${Math.floor((base64.length * 3) / 4).toLocaleString('en-US')} bytes`
}
