/** Summaries and descriptions of the operations on interactions, for the API reference. */

export const INTERACTION_TEXTS = {
  create: {
    id: 'createInteraction',
    summary: 'Run an agent',
    description: `Starts a run, waits until it ends, and returns 200 with the whole interaction.

- To return immediately with \`status: "running"\`, send \`background: true\`. To wait at most N seconds, send \`Prefer: wait=N\`. To get an event stream, send \`stream: true\`.
- Every successful response has the headers \`X-Interaction-Id\` and \`Location\`.
- If the run fails, the response has the HTTP status of its error, and \`error\` has the \`interactionId\`. The interaction stays readable. If the run is cancelled, the response is 200 with \`status: "cancelled"\`.
- Each \`files[i].url\` is fetched when the run starts, before the first model call. A URL that is not allowed is 400. A file that can’t be fetched (unknown host, a status other than 200, too large, too slow) fails the run with \`file_unavailable\`.
- While a tool call waits for approval, this request waits too. To learn of pending approvals, use \`background\`, \`stream\` or \`Prefer: wait=N\`; decide with \`:approve\`.
- If the caller disconnects, the run continues, unless \`onDisconnect\` is \`"cancel"\`.
- Unknown fields, tools and skills are ignored and reported in \`warnings\`. With \`Prefer: handling=strict\`, a skill or MCP server that can’t be used is 400.`,
  },
  createStream: {
    id: 'createInteractionStream',
    summary: 'Run an agent, streamed',
    description:
      'The same as `POST /v1beta/interactions` with `stream: true`: returns the run’s event stream from its first event. Errors before the first event are HTTP errors. Later errors are an `error` event, followed by `completed` with `status: "failed"`.',
  },
  list: {
    id: 'listInteractions',
    summary: 'List interactions',
    description:
      'Returns the project’s interactions in pages, by creation time, without the fields that can be long: `output`, `executionTrace`, `files`, `warnings`, `resolved`.',
  },
  get: {
    id: 'getInteraction',
    summary: 'Read an interaction',
    description:
      'Returns the current state, running or ended, as POST does. Its download URLs are valid for one hour; each read returns new ones. Ended interactions are deleted after the server’s retention time (default: 30 days), then 404.',
  },
  remove: {
    id: 'deleteInteraction',
    summary: 'Delete an interaction',
    description: 'Deletes an ended interaction with its events and files. 409 while it runs: cancel it first.',
  },
  stream: {
    id: 'streamInteraction',
    summary: 'Follow or resume a stream',
    description:
      'Returns the events after number `Last-Event-ID`, then new events until the run ends. Without `Last-Event-ID`, starts at the first event. Works while the interaction runs, after it has ended, and after a restart of the server.',
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
      'Cancels a running interaction and returns when its sandbox is gone, on whichever node it ran. No body is needed. Cancelling again is 200; an interaction that has completed or failed is 409. If the run’s node does not respond, this call returns when the node’s lease has expired (30 seconds by default): the node has then stopped the run, or has crashed. After a crash, leftover processes end at the sandbox’s own deadline or when the node starts again.',
  },
  approve: {
    id: 'approveInteraction',
    summary: 'Approve or deny pending tool calls',
    description:
      'For an interaction in stage `requires_action`. Without a body, approves all `pendingApprovals`. To decide on single calls, send `step` and `approve`, or `decisions`. The model sees which calls were denied, and the run continues at once. The decision is durable when this call returns. Repeating a decision is 200; changing it, or deciding when nothing is pending, is 409. Waiting counts towards `policy.maxTurnDuration`.',
  },
  approveBySlash: {
    id: 'approveInteractionBySlash',
    summary: 'Approve or deny pending tool calls (other spelling)',
    description: 'The same as `POST /v1beta/interactions/{id}:approve`, for clients that can’t write a colon.',
  },
  deliveries: {
    id: 'listDeliveries',
    summary: 'List webhook delivery attempts',
    description: 'Returns each attempt to notify the interaction’s `webhook`, and the time of the next one.',
  },
  cancelBySlash: {
    id: 'cancelInteractionBySlash',
    summary: 'Cancel an interaction (other spelling)',
    description: 'The same as `POST /v1beta/interactions/{id}:cancel`, for clients that can’t write a colon.',
  },
} as const
