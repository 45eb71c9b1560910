/** What the API reference says about each operation on interactions. */

export const INTERACTION_TEXTS = {
  create: {
    id: 'createInteraction',
    summary: 'Run an agent',
    description: `Accepts a run, waits for its end, and answers 200 with the whole interaction.

- \`background: true\` answers at once, with \`status: "running"\`. \`Prefer: wait=N\` waits at most N seconds, then answers in the same way. \`stream: true\` answers with an event stream.
- \`X-Interaction-Id\` and \`Location\` are there in each of these cases.
- A run that fails answers with the HTTP status of its error, \`interactionId\` inside \`error\`; what it did until then stays readable. A run that somebody cancels answers 200 with \`status: "cancelled"\`.
- \`files[i].url\` is fetched when the run starts, before the model is asked. An address that shows by itself that it is refused is 400; what only shows later (no such host, a status other than 200, too large, too slow) ends the run with \`file_unavailable\`.
- A tool call that waits for approval holds up a waiting caller too: \`background\`, \`stream\` or \`Prefer: wait=N\` let it hear of it, and \`:approve\` lets it go on.
- A caller that goes away does not stop the run, unless \`onDisconnect\` is \`"cancel"\`.
- Unknown fields, tools and skills never fail: each is told in \`warnings\`. With \`Prefer: handling=strict\`, a skill or MCP server that can’t be used is 400.`,
  },
  createStream: {
    id: 'createInteractionStream',
    summary: 'Run an agent, streamed',
    description:
      'As `POST /v1beta/interactions` with `stream: true`: the answer is the run’s event stream from its first event. Errors before the first event are ordinary HTTP errors; later ones are an `error` event, then `completed` with `status: "failed"`.',
  },
  list: {
    id: 'listInteractions',
    summary: 'List interactions',
    description:
      'The project’s interactions, a page at a time, by creation time. Items leave out what may be long: `output`, `executionTrace`, `files`, `warnings`, `resolved`.',
  },
  get: {
    id: 'getInteraction',
    summary: 'Read an interaction',
    description:
      'As it stands now, running or ended: the same body that POST answers. File addresses are signed anew, for an hour. Ended interactions are kept for the server’s retention time (30 days by default), then 404.',
  },
  remove: {
    id: 'deleteInteraction',
    summary: 'Delete an interaction',
    description: 'Removes an ended interaction with its events and files. 409 while it runs: cancel it first.',
  },
  stream: {
    id: 'streamInteraction',
    summary: 'Follow or resume a stream',
    description:
      'What came after the event with number `Last-Event-ID`, then live until the end; without it, from the first event. Works while the interaction runs, after its end, and after a restart of the server.',
  },
  streamBySlash: {
    id: 'streamInteractionBySlash',
    summary: 'Follow or resume a stream (other spelling)',
    description: 'The same as `GET /v1beta/interactions/{id}:stream`, for clients that can’t write a colon.',
  },
  cancel: {
    id: 'cancelInteraction',
    summary: 'Cancel an interaction',
    description:
      'Ends a running interaction. When the answer comes, its sandbox is dead, on whichever node it was. Again: 200. Already completed or failed: 409. Needs no body. Where that node does not answer any more, the answer comes when its lease has run out (half a minute unless the operator set another): by then it has stopped, or is gone, and then what it left on its machine ends with the sandbox’s own time or with its next start.',
  },
  approve: {
    id: 'approveInteraction',
    summary: 'Approve or deny tool calls that wait',
    description:
      'For an interaction in stage `requires_action`. Without a body, all of `pendingApprovals` is approved; with `step` and `approve`, or `decisions`, each as it says. A denied call is told to the model, which goes on. The same decision again: 200. Another one on a step that was decided, or nothing that waits: 409. The decision is durable when the answer comes; the run goes on at once, on whichever node it is. Its time goes on too: `policy.maxTurnDuration` counts while it waits.',
  },
  approveBySlash: {
    id: 'approveInteractionBySlash',
    summary: 'Approve or deny tool calls that wait (other spelling)',
    description: 'The same as `POST /v1beta/interactions/{id}:approve`, for clients that can’t write a colon.',
  },
  deliveries: {
    id: 'listDeliveries',
    summary: 'See what became of the webhook',
    description: 'Each attempt to tell the interaction’s `webhook` of its end, and when the next one is.',
  },
  cancelBySlash: {
    id: 'cancelInteractionBySlash',
    summary: 'Cancel an interaction (other spelling)',
    description: 'The same as `POST /v1beta/interactions/{id}:cancel`, for clients that can’t write a colon.',
  },
} as const
