/**
 * The built-in demo model: a small, deterministic stand-in for a language model, plainly labelled. It understands a
 * little grammar of tasks, writes real Python for them, drives the tools it is offered and answers with the numbers
 * that came out, so that everything but the intelligence can be seen at work on a machine without a key.
 *
 * The way of one call: transcript.ts reads the request → understand.ts finds the task → plan.ts finds the next move →
 * speak.ts says it. No state, no network, no clock: the same request gives the same reply.
 */
import { estimateTokens } from '../../domain/usage.ts'
import type { Model, ModelRequest } from '../port.ts'
import { WHO } from './help.ts'
import { nextMove } from './plan.ts'
import { type Reply, speak } from './speak.ts'
import { structuredAnswer } from './structured.ts'
import { readTranscript } from './transcript.ts'
import { understand } from './understand.ts'

export function createDemoModel(): Model {
  return {
    call: (request, onDelta, signal) =>
      speak(replyTo(request), countInput(request), request.maxOutputTokens, onDelta, signal),
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
  const text = request.responseFormat ? structuredAnswer(request.responseFormat, move.answer) : move.answer.text
  return { reasoning: label + move.answer.thought, move: { kind: 'text', text } }
}

/** What a provider would have counted as input, by estimate. Images and documents are not looked at and not counted. */
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
