/**
 * The built-in demo model: a small, deterministic replacement for a language model. It recognizes a few kinds of task by
 * rules, writes real Python for them, calls the tools it is offered, and answers with the computed numbers. So everything
 * but the intelligence can be tried without a key.
 *
 * transcript.ts reads the request → understand.ts finds the task → plan.ts finds the next move → stream-reply.ts streams
 * it. No state, no network, no clock: the same request gets the same reply.
 */
import { estimateTokens } from '../domain/usage.ts'
import type { Model, ModelRequest } from '../models/port.ts'
import { WHO } from './help.ts'
import { jsonAnswer } from './json-answer.ts'
import { nextMove } from './plan.ts'
import { type Reply, streamReply } from './stream-reply.ts'
import { readTranscript } from './transcript.ts'
import { understand } from './understand.ts'

export function createDemoModel(): Model {
  return {
    call: (request, onDelta, signal) =>
      streamReply(replyTo(request), countInput(request), request.maxOutputTokens, onDelta, signal),
  }
}

function replyTo(request: ModelRequest): Reply {
  const transcript = readTranscript(request)
  const move = nextMove(understand(transcript), transcript)
  const label = transcript.outputs.length === 0 ? `${WHO} ` : ''
  if (move.kind === 'call') {
    const { thought, tool, args } = move.call
    return {
      reasoning: label + thought,
      move: { kind: 'call', callId: `demo_${transcript.calls + 1}`, name: tool, args },
    }
  }
  const text = request.responseFormat ? jsonAnswer(request.responseFormat, move.answer) : move.answer.text
  return { reasoning: label + move.answer.thought, move: { kind: 'text', text } }
}

/** Estimate of the input tokens. Images and documents are not read and not counted. */
function countInput(request: ModelRequest): number {
  let characters = request.system?.length ?? 0
  for (const message of request.messages) {
    if (message.role === 'tool') characters += message.output.length
    else {
      for (const part of message.content) {
        if (part.type === 'tool_call') characters += part.name.length + part.argsText.length
        else if ('text' in part) characters += part.text.length
      }
    }
  }
  return estimateTokens(characters + JSON.stringify(request.tools).length)
}
