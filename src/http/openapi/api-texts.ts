/** The parts of the API reference that belong to no single operation. Markdown; docs.ts and OpenAPI both show them. */

export const INTRODUCTION = `Errand runs an AI agent on your behalf: you send an instruction, it works in a fresh, isolated Linux sandbox, and you get a natural-language answer with a step-by-step trace. The sandbox is discarded at the end; nothing is kept between runs.

Every call needs an API key in the header \`x-svc-api-key\`, and should pin its behaviour with \`Api-Revision: 2026-05-20\`. POST and PATCH take JSON with \`Content-Type: application/json\`. Paths with a colon may be written with \`%3A\`.`

export const EVENTS_TEXT = `A stream is Server-Sent Events in the order in which the agent works. Each event has \`id:\` (its number in the interaction’s log: 1, 2, 3 … without a gap), \`event:\` and \`data:\` (a JSON object). \`completed\` comes last, once, on every stream. To go on after a broken connection, call \`GET /v1beta/interactions/{id}:stream\` with \`Last-Event-ID\`. Ignore event names you don’t know. A comment keeps an idle connection alive every 15 s; a reader that takes nothing for 30 s is dropped, and may come back. In the short form, \`usage\` has two fields and \`args\` is JSON text.`

export interface EventDoc {
  readonly name: string
  readonly data: string
  readonly when: string
}

export const EVENTS: readonly EventDoc[] = [
  { name: 'reasoning_started', data: '{step, content}', when: 'A reasoning step begins, with what is there of it.' },
  { name: 'reasoning_delta', data: '{step, text}', when: 'More of that step; the trace holds the whole.' },
  {
    name: 'tool_call',
    data: '{step, name, args}',
    when: 'The agent calls a tool. `args.code` is what code_execution runs.',
  },
  { name: 'tool_output', data: '{step, text}', when: 'Output of the running call, as it comes.' },
  { name: 'tool_result', data: '{step, output, duration_ms}', when: 'The call has returned.' },
  {
    name: 'approval_required',
    data: '{step, name, args}',
    when: 'The call at that step waits for a person: `:approve` decides.',
  },
  { name: 'approval_decided', data: '{step, approve, reason?}', when: 'Somebody has decided; the run goes on.' },
  { name: 'partial_output', data: '{text}', when: 'A fragment of the answer; joined, they are exactly `output`.' },
  {
    name: 'model_retried',
    data: '{attempt, reason}',
    when: 'A model call broke off and is made again. The answer continues where it stopped; no text is sent twice.',
  },
  { name: 'stage', data: '{stage}', when: 'queued, provisioning, working, requires_action, settling.' },
  { name: 'warning', data: '{code, param, message}', when: 'Something in the request was not used.' },
  {
    name: 'error',
    data: '{interactionId, code, message, status, retryable}',
    when: 'The run has failed; `completed` with `status: "failed"` follows.',
  },
  { name: 'completed', data: '{interactionId, status, usage, stopReason?}', when: 'The end, whatever it was.' },
]
