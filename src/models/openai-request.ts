/**
 * ModelRequest → the JSON body of `POST /chat/completions`, as most servers of that wire understand it.
 *
 * `max_tokens` is sent rather than `max_completion_tokens`, which many compatible servers pass over. What a tool
 * result shows follows in a user message of its own: a tool message holds text only, and must stand right behind its call.
 */
import type { AssistantMessage, MediaPart, Message, ToolMessage, UserMessage } from '../domain/message.ts'
import type { ModelRequest } from './port.ts'
import type { LimitField } from './token-limit.ts'

export interface RequestSettings {
  readonly model: string
  /** The name under which the limit on output tokens goes; undefined: it is left out. */
  readonly limitField: LimitField | undefined
  /** Whether reasoning is given back as `reasoning_content`. Most servers refuse or ignore it; a few want it. */
  readonly sendReasoning: boolean
}

type Json = Record<string, unknown>

export function encodeRequest(request: ModelRequest, settings: RequestSettings): string {
  const body: Json = {
    model: settings.model,
    messages: encodeMessages(request, settings),
    stream: true,
    stream_options: { include_usage: true },
  }
  if (settings.limitField) body[settings.limitField] = request.maxOutputTokens
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, description, parameters },
    }))
  }
  if (request.responseFormat) {
    body.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema: request.responseFormat } }
  }
  return JSON.stringify(body)
}

function encodeMessages(request: ModelRequest, settings: RequestSettings): Json[] {
  const messages: Json[] = []
  if (request.system) messages.push({ role: 'system', content: request.system })
  let shown: Json[] = []
  for (const message of request.messages) {
    if (message.role !== 'tool' && shown.length > 0) {
      messages.push({ role: 'user', content: shown })
      shown = []
    }
    messages.push(encodeMessage(message, settings))
    if (message.role === 'tool') shown.push(...encodeToolMedia(message))
  }
  if (shown.length > 0) messages.push({ role: 'user', content: shown })
  return messages
}

function encodeMessage(message: Message, settings: RequestSettings): Json {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: encodeUserContent(message) }
    case 'assistant':
      return encodeAssistant(message, settings)
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.output }
  }
}

/** A plain string where it can be: some small servers know nothing else. */
function encodeUserContent({ content }: UserMessage): string | Json[] {
  const only = content[0]
  if (content.length === 1 && only?.type === 'text') return only.text
  return content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : encodeMedia(part)))
}

function encodeAssistant({ content }: AssistantMessage, settings: RequestSettings): Json {
  let text = ''
  let reasoning = ''
  const calls: Json[] = []
  for (const part of content) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'reasoning') reasoning += part.text
    else if (part.type === 'tool_call') {
      // Some servers parse the arguments back and fail the whole call where the model wrote no JSON.
      const written = part.args === undefined || part.argsText === '' ? '{}' : part.argsText
      calls.push({ id: part.callId, type: 'function', function: { name: part.name, arguments: written } })
    }
  }
  const message: Json = { role: 'assistant', content: text === '' && calls.length > 0 ? null : text }
  if (settings.sendReasoning && reasoning !== '') message.reasoning_content = reasoning
  if (calls.length > 0) message.tool_calls = calls
  return message
}

function encodeToolMedia({ name, media = [] }: ToolMessage): Json[] {
  if (media.length === 0) return []
  return [{ type: 'text', text: `From ${name}:` }, ...media.map(encodeMedia)]
}

/** PDFs as OpenAI's own chat completions take them; a server that does not is not given any (`documents`). */
function encodeMedia(part: MediaPart): Json {
  const url = `data:${part.mimeType};base64,${part.base64}`
  if (part.type === 'image') return { type: 'image_url', image_url: { url } }
  return { type: 'file', file: { filename: part.name, file_data: url } }
}
