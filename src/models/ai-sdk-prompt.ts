/** ModelRequest → the call options of an AI SDK provider. What a part's provider wants back goes back as it came. */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider'
import type { AssistantMessage, AssistantPart, MediaPart, Message, ToolMessage } from '../domain/message.ts'
import type { ModelRequest } from './port.ts'

export interface CallSettings {
  readonly providerOptions: SharedV4ProviderOptions
  /** Undefined: the provider's own limit. */
  readonly maxOutputTokens: number | undefined
}

export function encodeCall(
  request: ModelRequest,
  { providerOptions, maxOutputTokens }: CallSettings,
): LanguageModelV4CallOptions {
  return {
    prompt: encodePrompt(request),
    maxOutputTokens,
    providerOptions,
    tools: request.tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      description,
      inputSchema: parameters,
    })),
    responseFormat: request.responseFormat
      ? { type: 'json', schema: request.responseFormat, name: 'answer' }
      : undefined,
  }
}

function encodePrompt(request: ModelRequest): LanguageModelV4Message[] {
  const prompt: LanguageModelV4Message[] = request.system ? [{ role: 'system', content: request.system }] : []
  const calls = new Map<string, AssistantPart>()
  for (const message of request.messages) {
    if (message.role === 'tool') {
      const result = encodeResult(message, calls.get(message.callId))
      const last = prompt.at(-1)
      // The results of parallel calls belong into one message: some providers refuse a second.
      if (last?.role === 'tool') last.content.push(result)
      else prompt.push({ role: 'tool', content: [result] })
    } else prompt.push(encodeMessage(message))
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool_call') calls.set(part.callId, part)
    }
  }
  return prompt
}

function encodeMessage(message: Exclude<Message, ToolMessage>): LanguageModelV4Message {
  if (message.role === 'assistant') return { role: 'assistant', content: message.content.map(encodeAssistantPart) }
  return {
    role: 'user',
    content: message.content.map((part) =>
      part.type === 'text' ? { type: 'text', text: part.text } : encodeMedia(part),
    ),
  }
}

type EncodedPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number]

function encodeAssistantPart(part: AssistantMessage['content'][number]): EncodedPart {
  const providerOptions = part.provider as SharedV4ProviderOptions | undefined
  if (part.type !== 'tool_call') return { type: part.type, text: part.text, providerOptions }
  return { type: 'tool-call', toolCallId: part.callId, toolName: part.name, input: part.args ?? {}, providerOptions }
}

/** The result carries its call's metadata too: some providers put calls and results together by it. */
function encodeResult(message: ToolMessage, call: AssistantPart | undefined): LanguageModelV4ToolResultPart {
  const { callId, name, output, media = [] } = message
  return {
    type: 'tool-result',
    toolCallId: callId,
    toolName: name,
    providerOptions: call?.provider as SharedV4ProviderOptions | undefined,
    output:
      media.length === 0
        ? { type: 'text', value: output }
        : {
            type: 'content',
            value: [{ type: 'text', text: output }, ...media.map(encodeMedia)],
          },
  }
}

/** Every provider of the SDK takes images and PDFs in a result as it does in a user's message. */
function encodeMedia(part: MediaPart) {
  const file = { type: 'file', mediaType: part.mimeType, data: { type: 'data', data: part.base64 } } as const
  return part.type === 'document' ? { ...file, filename: part.name } : file
}
