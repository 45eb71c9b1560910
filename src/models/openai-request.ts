/**
 * ModelRequest → the JSON body of `POST /chat/completions`, in the form that most servers accept.
 *
 * `max_tokens` is sent instead of `max_completion_tokens`, which many compatible servers ignore. Images and documents of tool
 * results are sent in a user message after them: a tool message has text only and must directly follow its call.
 */
import type { AssistantMessage, MediaPart, Message, ToolMessage, UserMessage } from '../domain/message.ts'
import type { FittedParameters } from './parameters.ts'
import type { ModelRequest, PromptCaching } from './port.ts'
import { prefixEnds } from './prompt-cache.ts'
import type { ChatDialect } from './providers/chat-provider.ts'
import { reasoningDetailsOf } from './reasoning-details.ts'
import { mergeBody } from './request-extras.ts'
import type { SentLimit } from './token-limit.ts'

export interface RequestSettings {
  readonly model: string
  /** Limit on output tokens. Undefined: none is sent. */
  readonly limit: SentLimit | undefined
  readonly parameters: FittedParameters
  /** Whether each assistant message has its reasoning as `reasoning_content`, empty if there is none. */
  readonly sendReasoning: boolean
  readonly dialect: ChatDialect
  /** Undefined: nothing is sent for the provider's prompt cache. */
  readonly cache: PromptCaching | undefined
  /** The operator's fields. */
  readonly extraBody?: Readonly<Json>
}

type Json = Record<string, unknown>

export function encodeRequest(request: ModelRequest, settings: RequestSettings): string {
  const { model, dialect, cache } = settings
  const messages = encodeMessages(request, settings)
  const body: Json = {
    model,
    messages: cache && dialect.cachesAtBreakpoints?.(model) ? markBreakpoints(messages, cache) : messages,
    stream: true,
  }
  if (!dialect.omitsStreamOptions) body.stream_options = { include_usage: true }
  if (cache) Object.assign(body, dialect.cacheFields?.(cache.key))
  if (settings.limit) body[settings.limit.field] = settings.limit.tokens
  Object.assign(body, encodeParameters(settings))
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, description, parameters },
    }))
  }
  if (constrains(request, dialect)) {
    body.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema: request.responseFormat } }
  }
  return JSON.stringify(settings.extraBody ? mergeBody(body, settings.extraBody) : body)
}

function encodeParameters({ parameters: { effort, temperature, verbosity }, dialect, model }: RequestSettings): Json {
  const encodeEffort = dialect.encodeEffort ?? ((level) => ({ reasoning_effort: level }))
  return {
    ...(effort && encodeEffort(effort, model)),
    ...(temperature !== undefined && { temperature }),
    ...(verbosity && { verbosity }),
  }
}

/**
 * Whether the server constrains the answer to the response format. With tools, some servers (vLLM) constrain the whole
 * output, so the model cannot call any. The prompt then asks for the format, and the engine checks the answer.
 */
function constrains({ responseFormat, tools }: ModelRequest, { omitsResponseFormat }: ChatDialect): boolean {
  return responseFormat !== undefined && tools.length === 0 && !omitsResponseFormat
}

function systemText(request: ModelRequest, dialect: ChatDialect): string | undefined {
  const { system, responseFormat } = request
  if (!responseFormat || constrains(request, dialect)) return system
  const format = [
    'Your final answer must be one JSON value that is valid against the JSON Schema below. Write nothing before or',
    `after it, and no code fence. Call tools as you need them until then.\n\n${JSON.stringify(responseFormat)}`,
  ].join(' ')
  return system ? `${system}\n\n${format}` : format
}

function encodeMessages(request: ModelRequest, settings: RequestSettings): Json[] {
  const { dialect } = settings
  const messages: Json[] = []
  const system = systemText(request, dialect)
  if (system) messages.push({ role: 'system', content: system })
  let shown: Json[] = []
  const append = (message: Json): void => {
    const separates = dialect.separatesToolResults && message.role === 'user' && messages.at(-1)?.role === 'tool'
    if (separates) messages.push({ role: 'assistant', content: SEPARATOR })
    messages.push(message)
  }
  for (const message of request.messages) {
    if (message.role !== 'tool' && shown.length > 0) {
      append({ role: 'user', content: shown })
      shown = []
    }
    const encoded = encodeMessage(message, settings)
    if (encoded) append(encoded)
    if (message.role === 'tool') shown.push(...encodeToolMedia(message, dialect))
  }
  if (shown.length > 0) append({ role: 'user', content: shown })
  return messages
}

/** Assistant message between a tool result and a user message. */
const SEPARATOR = 'I have the results.'

function encodeMessage(message: Message, settings: RequestSettings): Json | undefined {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: encodeUserContent(message, settings.dialect) }
    case 'assistant':
      return encodeAssistant(message, settings)
    case 'tool':
      return { role: 'tool', tool_call_id: encodeCallId(message.callId, settings.dialect), content: message.output }
  }
}

/** A plain string if possible: some small servers accept nothing else. */
function encodeUserContent({ content }: UserMessage, dialect: ChatDialect): string | Json[] {
  const only = content[0]
  if (content.length === 1 && only?.type === 'text') return only.text
  return content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : encodeMedia(part, dialect)))
}

function encodeCallId(callId: string, { encodeCallId: encode }: ChatDialect): string {
  return encode ? encode(callId) : callId
}

/** Undefined if there is neither text nor a call: some servers refuse such a message. */
function encodeAssistant({ content }: AssistantMessage, settings: RequestSettings): Json | undefined {
  let text = ''
  let reasoning = ''
  const calls: Json[] = []
  for (const part of content) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'reasoning') reasoning += part.text
    else if (part.type === 'tool_call') {
      // Some servers parse the arguments and fail the whole call if the model did not write JSON.
      const written = part.args === undefined || part.argsText === '' ? '{}' : part.argsText
      const id = encodeCallId(part.callId, settings.dialect)
      calls.push({ id, type: 'function', function: { name: part.name, arguments: written } })
    }
  }
  if (text === '' && calls.length === 0) return undefined
  const message: Json = { role: 'assistant', content: text === '' ? null : text }
  const details = settings.dialect.returnsReasoningDetails ? reasoningDetailsOf(content, settings.model) : undefined
  if (details) message.reasoning_details = details
  else if (settings.sendReasoning) message.reasoning_content = reasoning
  if (calls.length > 0) message.tool_calls = calls
  return message
}

function encodeToolMedia({ name, media = [] }: ToolMessage, dialect: ChatDialect): Json[] {
  if (media.length === 0) return []
  return [{ type: 'text', text: `From ${name}:` }, ...media.map((part) => encodeMedia(part, dialect))]
}

/** PDFs are sent as in OpenAI's own API. Servers that do not accept them get none (`documents`). */
function encodeMedia(part: MediaPart, { encodeDocument }: ChatDialect): Json {
  const url = `data:${part.mimeType};base64,${part.base64}`
  if (part.type === 'image') return { type: 'image_url', image_url: { url } }
  return encodeDocument?.(url) ?? { type: 'file', file: { filename: part.name, file_data: url } }
}

/** Marks where the provider ends a prefix that it caches, in the form of OpenRouter. */
function markBreakpoints(messages: readonly Json[], { long }: PromptCaching): Json[] {
  const cacheControl = { type: 'ephemeral', ...(long && { ttl: '1h' }) }
  const ends = prefixEnds(messages)
  return messages.map((message, i) => (ends.has(i) ? markMessage(message, cacheControl) : message))
}

/** Text is marked in its last part. A tool message is marked as a whole: it has no parts. */
function markMessage(message: Json, cacheControl: Json): Json {
  const { role, content } = message
  if (role === 'tool') return { ...message, cache_control: cacheControl }
  if (!content) return message
  const parts: readonly Json[] = Array.isArray(content) ? content : [{ type: 'text', text: content }]
  const last = parts.findLastIndex(({ type }) => type === 'text')
  return {
    ...message,
    content: parts.map((part, i) => (i === last ? { ...part, cache_control: cacheControl } : part)),
  }
}
