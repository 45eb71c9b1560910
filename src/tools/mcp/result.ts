/**
 * What a server answered, as a model is given it: text as text, images to models that see, the rest named in words. A
 * server may answer anything of any size; what comes out is bounded.
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
import { truncateMiddle } from '../truncate.ts'

export interface Room {
  /** Bytes of text. */
  readonly outputBytes: number
  /** Whether the model sees images. */
  readonly vision: boolean
  /** Whether it is given PDFs whole. */
  readonly documents: boolean
}

const MAX_MEDIA = 8
/** Of one, in base64; what providers take is around 5 MB. */
const MAX_MEDIA_CHARS = 6_000_000
const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const MAX_BLOCKS = 1_000

export function toOutcome(result: CallToolResult, room: Room): ToolOutcome {
  const writer = createWriter(room)
  if (result.isError) writer.say('The tool reports an error:')
  const content = result.content ?? []
  for (const block of content.slice(0, MAX_BLOCKS)) writer.block(block)
  if (content.length > MAX_BLOCKS) writer.say(`[${content.length - MAX_BLOCKS} more parts left out]`)
  // Servers repeat it as text for clients that don't know it; where one did not, it is all there is.
  const { structuredContent } = result
  if (structuredContent !== undefined && !content.some((block) => block.type === 'text')) {
    writer.say(JSON.stringify(structuredContent))
  }
  return writer.outcome(result.isError ? '' : 'The tool answered without content.')
}

export function fromResource(result: ReadResourceResult, room: Room): ToolOutcome {
  const writer = createWriter(room)
  for (const resource of result.contents.slice(0, MAX_BLOCKS)) writer.block({ type: 'resource', resource })
  return writer.outcome('The resource is empty.')
}

export function fromPrompt(result: GetPromptResult, room: Room): ToolOutcome {
  const writer = createWriter(room)
  if (result.description) writer.say(result.description)
  for (const { role, content } of result.messages.slice(0, MAX_BLOCKS)) {
    writer.say(`${role}:`)
    writer.block(content)
  }
  return writer.outcome('The prompt is empty.')
}

function createWriter({ outputBytes, vision, documents }: Room) {
  const lines: string[] = []
  const media: MediaPart[] = []

  function image(mimeType: string, base64: string): void {
    const size = describeBytes(base64)
    if (!vision) lines.push(`[image, ${mimeType}, ${size}: this model can't see images]`)
    else if (!IMAGE_TYPES.has(mimeType)) lines.push(`[image, ${mimeType}, ${size}: not a format that models see]`)
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
    say(text: string): void {
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
          lines.push(`[audio, ${block.mimeType}, ${describeBytes(block.data)}: it can't be heard here]`)
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
      const { text } = truncateMiddle(lines.join('\n') || empty, outputBytes)
      return media.length > 0 ? { output: text, media } : { output: text }
    },
  }
}

function isPdf<T extends { readonly mimeType?: string }>(it: T): it is T & { mimeType: string } {
  return it.mimeType === 'application/pdf'
}

function describeBytes(base64: string): string {
  return `${Math.floor((base64.length * 3) / 4).toLocaleString('en-US')} bytes`
}
