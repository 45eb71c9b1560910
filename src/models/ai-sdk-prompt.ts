/** ModelRequest → call options of an AI SDK provider. The provider's metadata of a part is sent back unchanged. */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4ToolCall,
  LanguageModelV4ToolResult,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider'
import type { AssistantMessage, AssistantPart, MediaPart, Message, ToolMessage } from '../domain/message.ts'
import { isJsonObject } from './json.ts'
import type { ModelRequest } from './port.ts'
import { markPrefixes } from './prompt-cache.ts'
import type { AiSdkProvider } from './providers/ai-sdk-provider.ts'

export interface CallSettings {
  readonly providerOptions: SharedV4ProviderOptions
  /** Options of the messages that end a cached prefix. Undefined: none are marked. */
  readonly breakpoint?: SharedV4ProviderOptions
  /** Undefined: the provider's default. */
  readonly maxOutputTokens: number | undefined
  readonly temperature: number | undefined
  readonly provider: AiSdkProvider
}

export function encodeCall(
  request: ModelRequest,
  { providerOptions, breakpoint, maxOutputTokens, temperature, provider }: CallSettings,
): LanguageModelV4CallOptions {
  const functions = request.tools.map(
    ({ name, description, parameters }) => ({ type: 'function', name, description, inputSchema: parameters }) as const,
  )
  const search = request.search ? provider.search?.tool : undefined
  const prompt = encodePrompt(request, provider)
  return {
    prompt: breakpoint ? markPrefixes(prompt, breakpoint) : prompt,
    maxOutputTokens,
    temperature,
    providerOptions,
    tools: search ? [...functions, search] : functions,
    responseFormat: request.responseFormat
      ? { type: 'json', schema: request.responseFormat, name: 'answer' }
      : undefined,
  }
}

function encodePrompt(request: ModelRequest, provider: AiSdkProvider): LanguageModelV4Message[] {
  const prompt: LanguageModelV4Message[] = request.system ? [{ role: 'system', content: request.system }] : []
  const calls = new Map<string, ToolCallPart>()
  for (const message of request.messages) {
    if (message.role === 'tool') {
      const result = encodeResult(message, calls.get(message.callId))
      const last = prompt.at(-1)
      // Results of parallel calls are sent in one message: some providers refuse a second.
      if (last?.role === 'tool') last.content.push(result)
      else prompt.push({ role: 'tool', content: [result] })
    } else {
      const encoded = encodeMessage(message, provider)
      // Providers refuse a message without content.
      if (encoded.content.length > 0) prompt.push(encoded)
    }
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool_call') calls.set(part.callId, part)
    }
  }
  return prompt
}

function encodeMessage(message: Exclude<Message, ToolMessage>, provider: AiSdkProvider): LanguageModelV4Message {
  if (message.role === 'assistant') {
    return { role: 'assistant', content: acceptedParts(message, provider).map(encodeAssistantPart) }
  }
  return {
    role: 'user',
    content: message.content.map((part) =>
      part.type === 'text' ? { type: 'text', text: part.text } : encodeMedia(part),
    ),
  }
}

/**
 * The parts that this provider accepts. Text must not be blank. Reasoning at the end of the message is dropped: a call
 * without a result was removed from after it. Parts of another provider's tools and reasoning without this provider's
 * signature are dropped as well.
 */
function acceptedParts({ content }: AssistantMessage, provider: AiSdkProvider): readonly AssistantPart[] {
  const accepted = content.filter((part) => {
    if (part.type === 'provider_tool') return part.by === provider.name
    if (part.type === 'reasoning') return isFrom(provider, part.provider)
    return part.type === 'tool_call' || part.text.trim() !== '' || part.provider !== undefined
  })
  return accepted.slice(0, accepted.findLastIndex(({ type }) => type !== 'reasoning') + 1)
}

function isFrom({ name, acceptsUnsignedReasoning }: AiSdkProvider, metadata: unknown): boolean {
  if (metadata === undefined) return acceptsUnsignedReasoning === true
  return isJsonObject(metadata) && name in metadata
}

type ToolCallPart = Extract<AssistantPart, { type: 'tool_call' }>
type EncodedPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number]

function encodeAssistantPart(part: AssistantMessage['content'][number]): EncodedPart {
  if (part.type === 'provider_tool')
    return encodeProviderTool(part.part as LanguageModelV4ToolCall | LanguageModelV4ToolResult)
  const providerOptions = part.provider as SharedV4ProviderOptions | undefined
  if (part.type !== 'tool_call') return { type: part.type, text: part.text, providerOptions }
  return { type: 'tool-call', toolCallId: part.callId, toolName: part.name, input: part.args ?? {}, providerOptions }
}

function encodeProviderTool(part: LanguageModelV4ToolCall | LanguageModelV4ToolResult): EncodedPart {
  const { toolCallId, toolName, providerMetadata: providerOptions } = part
  if (part.type === 'tool-call') {
    const input: unknown = JSON.parse(part.input || '{}')
    return { type: 'tool-call', toolCallId, toolName, input, providerExecuted: true, providerOptions }
  }
  const output = { type: part.isError ? 'error-json' : 'json', value: part.result } as const
  return { type: 'tool-result', toolCallId, toolName, output, providerOptions }
}

/** Also has the call's metadata: some providers match calls and results by it. */
function encodeResult(message: ToolMessage, call: ToolCallPart | undefined): LanguageModelV4ToolResultPart {
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

/** Images and PDFs have the same form in results and in user messages, for every provider of the SDK. */
function encodeMedia(part: MediaPart) {
  const file = { type: 'file', mediaType: part.mimeType, data: { type: 'data', data: part.base64 } } as const
  return part.type === 'document' ? { ...file, filename: part.name } : file
}
