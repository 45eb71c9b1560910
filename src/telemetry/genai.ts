/**
 * Span attributes by the GenAI semantic conventions (open-telemetry/semantic-conventions-genai, 1.41), and `errand.*` for what the
 * conventions lack. Functions whose names end in `Content` return prompts and answers. They are called only if the operator enables it.
 */
import type { Attributes } from '@opentelemetry/api'
import type { RunSpec } from '../domain/interaction.ts'
import type { AssistantPart, Message } from '../domain/message.ts'
import type { ModelOutcome } from '../models/port.ts'
import { findProvider } from '../models/providers/registry.ts'
import type { RunName, TelemetryEvent } from './events.ts'

type EventOf<T extends TelemetryEvent['type']> = Extract<TelemetryEvent, { type: T }>

export function agentAttributes({ id, projectId, epoch }: RunName, spec: RunSpec): Attributes {
  return {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': id,
    'gen_ai.request.model': spec.model,
    'gen_ai.output.type': spec.responseFormat ? 'json' : 'text',
    ...(spec.agentId !== undefined && { 'gen_ai.agent.id': spec.agentId }),
    ...(spec.agentVersion !== undefined && { 'gen_ai.agent.version': String(spec.agentVersion) }),
    'errand.interaction.id': id,
    'errand.project.id': projectId,
    'errand.run.epoch': epoch,
  }
}

export function endAttributes({ status, stopReason, usage }: EventOf<'ended'>): Attributes {
  return {
    'errand.interaction.status': status,
    ...(stopReason && { 'gen_ai.response.finish_reasons': [stopReason] }),
    'gen_ai.usage.input_tokens': usage.input_tokens,
    'gen_ai.usage.output_tokens': usage.output_tokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cached_input_tokens,
    'gen_ai.usage.cache_creation.input_tokens': usage.cache_write_tokens,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoning_tokens,
    ...(usage.cost && { 'errand.usage.cost_usd': Number(usage.cost.amount) }),
  }
}

export function chatAttributes({
  run,
  model,
  request,
  outcome,
  tokens,
  cost,
  firstMs,
}: EventOf<'model_called'>): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': findProvider(model.provider)?.telemetryName ?? model.provider,
    'gen_ai.conversation.id': run.id,
    'gen_ai.request.model': model.model,
    'gen_ai.request.max_tokens': request.maxOutputTokens,
    'gen_ai.request.stream': true,
    'gen_ai.output.type': request.responseFormat ? 'json' : 'text',
    ...(outcome.ok && { 'gen_ai.response.finish_reasons': [outcome.finish] }),
    ...(firstMs !== undefined && { 'gen_ai.response.time_to_first_chunk': firstMs / 1_000 }),
    'gen_ai.usage.input_tokens': tokens.input,
    'gen_ai.usage.output_tokens': tokens.output,
    'gen_ai.usage.cache_read.input_tokens': tokens.cachedInput,
    'gen_ai.usage.cache_creation.input_tokens': tokens.cacheWrite ?? 0,
    'gen_ai.usage.reasoning.output_tokens': tokens.reasoning,
    'errand.model.name': model.name,
    ...(cost !== undefined && { 'errand.usage.cost_usd': cost }),
  }
}

export function chatContent({ request, redact }: EventOf<'model_called'>, outcome: ModelOutcome): Attributes {
  const { system, messages } = request
  return {
    ...(system !== undefined && {
      'gen_ai.system_instructions': redact(JSON.stringify([{ type: 'text', content: system }])),
    }),
    'gen_ai.input.messages': redact(JSON.stringify(messages.map(messageContent))),
    ...(outcome.ok && {
      'gen_ai.output.messages': redact(
        JSON.stringify([{ ...messageContent(outcome.message), finish_reason: outcome.finish }]),
      ),
    }),
  }
}

export function toolAttributes({ name, callId, ending }: EventOf<'tool_called'>): Attributes {
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.call.id': callId,
    ...(ending !== 'refused' && { 'gen_ai.tool.name': name }),
  }
}

export function toolContent({ name, args, output, redact }: EventOf<'tool_called'>): Attributes {
  return {
    'gen_ai.tool.name': redact(name),
    'gen_ai.tool.call.arguments': redact(JSON.stringify(args)),
    ...(output !== undefined && { 'gen_ai.tool.call.result': output }),
  }
}

/** A message in the JSON format of the conventions. */
function messageContent(message: Message): object {
  if (message.role === 'tool') {
    const { callId: id, output: response } = message
    return { role: 'tool', parts: [{ type: 'tool_call_response', id, response }] }
  }
  return { role: message.role, parts: message.content.map(partContent) }
}

/** A part of a message. Images and documents are named, without their content. */
function partContent(part: AssistantPart | Exclude<Message, { role: 'tool' }>['content'][number]): object {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: part.text }
    case 'tool_call':
      return { type: 'tool_call', id: part.callId, name: part.name, arguments: part.args ?? part.argsText }
    case 'provider_tool':
      return { type: 'provider_tool' }
    case 'image':
    case 'document':
      return { type: part.type, mime_type: part.mimeType }
  }
}
