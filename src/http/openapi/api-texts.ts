/** Markdown texts of the API reference that are not about a single operation. The documentation and OpenAPI show them. */

export const INTRODUCTION = `Errand runs an AI agent on your behalf: you send an instruction, the agent works in a fresh, isolated Linux sandbox, and you get an answer in natural language with a step-by-step trace. The sandbox is discarded at the end; nothing in it is kept between runs.

Every call needs an API key in the header \`x-svc-api-key\`, and should send \`Api-Revision: 2026-05-20\`, so that the API’s behavior never changes for it. POST and PATCH take JSON with \`Content-Type: application/json\`. A colon in a path may be written as \`%3A\`.`

export const EVENTS_TEXT = `A stream consists of Server-Sent Events (SSE), in the order in which the agent works. Each event has \`id:\` (its number in the interaction’s log: 1, 2, 3 … without gaps), \`event:\` (its name) and \`data:\` (a JSON object). \`completed\` is the last event of every run. To resume after a broken connection, call \`GET /v1beta/interactions/{id}:stream\` with \`Last-Event-ID\`. Ignore event names that you don’t know. The server sends a comment every 15 s to keep an idle connection alive, and disconnects a client that reads nothing for 30 s; it can resume. In the short form, \`usage\` has two fields and \`args\` is JSON text.`

export interface EventDoc {
  readonly name: string
  readonly data: string
  readonly when: string
}

export const EVENTS: readonly EventDoc[] = [
  { name: 'reasoning_started', data: '{step, content}', when: 'A reasoning step begins, with its first text.' },
  { name: 'reasoning_delta', data: '{step, text}', when: 'More text of that step. The trace has the whole text.' },
  {
    name: 'tool_call',
    data: '{step, name, args}',
    when: 'The agent calls a tool. `args.code` is what code_execution runs.',
  },
  { name: 'tool_output', data: '{step, text}', when: 'Output of the running call, while it runs.' },
  { name: 'tool_result', data: '{step, output, duration_ms}', when: 'The call has returned.' },
  {
    name: 'approval_required',
    data: '{step, name, args}',
    when: 'The call at that step waits for approval. Decide with `:approve`.',
  },
  { name: 'approval_decided', data: '{step, approve, reason?}', when: 'Someone has decided. The run continues.' },
  {
    name: 'partial_output',
    data: '{text}',
    when: 'A fragment of the answer. All fragments joined are exactly `output`.',
  },
  {
    name: 'model_retried',
    data: '{attempt, reason}',
    when: 'A model call failed midway and is retried. The answer continues where it stopped; no text is sent twice.',
  },
  { name: 'stage', data: '{stage}', when: 'queued, provisioning, working, requires_action, settling.' },
  { name: 'warning', data: '{code, param, message}', when: 'Something in the request was ignored.' },
  {
    name: 'error',
    data: '{interactionId, code, message, status, retryable}',
    when: 'The run has failed; `completed` with `status: "failed"` follows.',
  },
  {
    name: 'completed',
    data: '{interactionId, status, usage, stopReason?}',
    when: 'The run has ended: completed, failed or cancelled.',
  },
]
