/** Revision 2026-05-20, outward: what answers look like, for the OpenAPI document and for the tests that hold us to it. */
import { z } from 'zod'

const time = () => z.iso.datetime().meta({ examples: ['2026-05-20T09:30:00.000Z'] })

export const warning = z
  .object({
    code: z.string().meta({ examples: ['unknown_tool'] }),
    param: z.string().optional().meta({ description: 'The request field it is about.' }),
    message: z.string(),
  })
  .meta({
    title: 'Warning',
    description:
      'Something in the request that was not used: `unknown_field`, `unknown_parameter`, `unknown_tool`, `tool_unavailable`, `unknown_skill`, `mcp_unavailable` …',
  })

const policy = z
  .object({
    maxTurnDuration: z.int().optional(),
    maxOutputTokens: z.int().optional(),
    maxCost: z.number().optional(),
    maxToolDuration: z.int().optional(),
    sandbox: z
      .object({
        memoryMiB: z.int().optional(),
        cpus: z.number().optional(),
        pids: z.int().optional(),
        workspaceMiB: z.int().optional(),
        files: z.int().optional(),
        outputBytes: z.int().optional(),
      })
      .optional()
      .meta({ title: 'SandboxPolicyAnswer', description: 'What a sandbox of the run may use.' }),
  })
  .meta({ title: 'PolicyAnswer', description: 'Limits of a run: seconds, tokens, US dollars.' })

const mcpServer = z
  .looseObject({
    name: z.string(),
    url: z.string().optional(),
    authentication: z
      .looseObject({ type: z.string() })
      .optional()
      .meta({ description: 'The kind alone, never a secret.' }),
    allowedTools: z.array(z.string()).optional(),
    requireApproval: z.unknown().optional(),
  })
  .meta({ title: 'McpServerAnswer', description: 'An MCP server, without secrets.' })

const network = z.union([
  z.enum(['disabled', 'public']),
  z.object({
    allow: z.array(z.string()),
    inject: z
      .array(
        z.object({
          host: z.string(),
          header: z.string(),
          credentialId: z.string(),
          format: z.string().optional(),
        }),
      )
      .optional(),
  }),
])
const labels = z.record(z.string(), z.string())
const nextPageToken = z.string().optional().meta({ description: 'For the next page; absent on the last one.' })

export const agent = z
  .object({
    id: z.string().meta({ examples: ['agt_0Wb1xYz3kJ9mQ2pR5sT7uV'] }),
    agentId: z.string().meta({ description: 'The same as `id`, under the name that an interaction uses.' }),
    displayName: z.string().optional(),
    description: z.string().optional(),
    systemInstruction: z.string().optional(),
    model: z.string().meta({ examples: ['svc-3.5-flash'] }),
    tools: z.array(z.string()),
    skills: z.array(z.string()),
    mcp: z.array(mcpServer),
    network: network.optional(),
    policy,
    labels,
    version: z.int().min(1).meta({ description: 'From 1; rises with each real change. Each version stays readable.' }),
    createTime: time(),
    updateTime: time(),
    etag: z.string().meta({ description: 'The `ETag` header’s value, quotes included: for `If-Match`.' }),
    warnings: z
      .array(warning)
      .optional()
      .meta({ description: 'On the answer to POST and PATCH alone, where there are any.' }),
  })
  .meta({ title: 'Agent', description: 'A stored agent configuration.' })

export const agentList = z.object({ agents: z.array(agent), nextPageToken }).meta({ title: 'AgentList' })

export const agentVersions = z
  .object({ versions: z.array(agent), nextPageToken })
  .meta({ title: 'AgentVersions', description: 'An agent’s versions, newest first.' })

export const fullUsage = z
  .object({
    input_tokens: z.int(),
    output_tokens: z.int(),
    total_tokens: z.int().optional().meta({ description: '`input_tokens + output_tokens`.' }),
    duration_ms: z.int().optional().meta({ description: 'Wall time from acceptance to the end, milliseconds.' }),
    cached_input_tokens: z.int().optional(),
    reasoning_tokens: z.int().optional().meta({ description: 'Part of `output_tokens`.' }),
    model_calls: z.int().optional(),
    tool_calls: z.int().optional(),
    sandbox_ms: z.int().optional().meta({ description: 'Wall time during which a sandbox stood, milliseconds.' }),
    cost: z
      .object({ amount: z.string().meta({ examples: ['0.0123'] }), currency: z.string() })
      .optional()
      .meta({ description: 'Where the model has a price.' }),
  })
  .meta({
    title: 'Usage',
    description:
      'What a run used so far; present on failure and cancellation too. The short form has `input_tokens` and `output_tokens` alone.',
  })

export const args = z
  .union([z.record(z.string(), z.unknown()), z.string()])
  .meta({ description: 'An object; in the short form, the same as JSON text.' })

const step = z.int().min(1)
/** Each variant has a title, so that generated clients have a named type for it. */
const traceStep = z
  .discriminatedUnion('type', [
    z.object({ step, type: z.literal('reasoning'), content: z.string() }).meta({ title: 'ReasoningStep' }),
    z.object({ step, type: z.literal('tool_call'), name: z.string(), args }).meta({ title: 'ToolCallStep' }),
    z
      .object({ step, type: z.literal('tool_result'), output: z.string(), duration_ms: z.int().optional() })
      .meta({ title: 'ToolResultStep' }),
  ])
  .meta({ title: 'TraceStep', description: 'One step of the work. A call and its result each have their own `step`.' })

const file = {
  url: z.string().meta({ description: 'Signed, valid for an hour, minted anew at each read. Needs no key.' }),
  size: z.int().meta({ description: 'Bytes.' }),
  mimeType: z.string(),
  sha256: z.string(),
}
const outputFile = z
  .object({ name: z.string().meta({ description: 'Path below `outputs/` of the working directory.' }), ...file })
  .meta({ title: 'OutputFile', description: 'A file that the agent produced.' })
const inputFile = z
  .object({ name: z.string().meta({ description: 'Path in the working directory.' }), ...file })
  .meta({ title: 'StoredInputFile', description: 'A file that the run was given.' })

const status = z.enum(['running', 'completed', 'failed', 'cancelled']).meta({
  description: '`running` turns into exactly one of the others, which never changes again.',
})

export const runError = z
  .object({ code: z.string(), message: z.string(), status: z.int(), retryable: z.boolean() })
  .meta({ title: 'RunError', description: 'Why a run failed.' })

export const stage = z
  .enum(['queued', 'provisioning', 'working', 'requires_action', 'settling'])
  .meta({ description: 'Where a `running` interaction is.' })

export const stopReason = z
  .enum([
    'end_turn',
    'max_output_tokens',
    'max_cost',
    'budget_exceeded',
    'max_model_calls',
    'max_turn_duration',
    'content_filter',
  ])
  .meta({
    description:
      'Why a completed run ended. `max_…` and `budget_exceeded`: it reached that limit, and its output is cut off, or the model was asked to answer with what it had.',
  })

const summary = {
  interactionId: z.string().meta({ examples: ['int_0Wb1xYz3kJ9mQ2pR5sT7uV'] }),
  id: z.string().meta({ description: 'The same as `interactionId`.' }),
  status,
  stage: stage.optional(),
  agentId: z.string().optional(),
  agentVersion: z.int().optional(),
  model: z.string(),
  instruction: z.string(),
  previousInteractionId: z.string().optional(),
  retryOf: z.string().optional().meta({
    description:
      'The earlier interaction with the same `Idempotency-Key`, which failed with a retryable error. This one is a new run.',
  }),
  labels,
  createTime: time(),
  endTime: time().optional(),
  stopReason: stopReason.optional(),
  error: runError.optional(),
  usage: fullUsage,
}

export const interaction = z
  .object({
    ...summary,
    output: z.string().meta({ description: 'The answer: the stream’s `partial_output` fragments joined.' }),
    executionTrace: z.array(traceStep),
    files: z.array(outputFile),
    warnings: z.array(warning),
    pendingApprovals: z
      .array(z.object({ step: z.int().min(1), name: z.string(), args }))
      .optional()
      .meta({ description: 'Tool calls that wait for a person, in stage `requires_action`. See `:approve`.' }),
    resolved: z
      .object({
        systemInstruction: z.string().optional(),
        model: z.string(),
        tools: z.array(z.string()),
        skills: z.array(z.string()).meta({ description: 'With their versions: `pdf@3`.' }),
        skillDigests: z
          .record(z.string(), z.string())
          .optional()
          .meta({ description: 'Of the content of each, by its entry in `skills`.' }),
        mcp: z.array(mcpServer),
        policy,
        network,
        responseFormat: z
          .record(z.string(), z.unknown())
          .optional()
          .meta({ description: 'The JSON Schema that the answer must satisfy.' }),
        files: z
          .array(inputFile)
          .meta({ description: 'What it was given; those by URL stand here once they were fetched.' }),
      })
      .meta({ description: 'What the run ran with: agent, request and defaults put together at acceptance.' }),
  })
  .meta({ title: 'Interaction', description: 'One run of an agent.' })

export const interactionList = z
  .object({
    interactions: z.array(
      z.object(summary).meta({
        title: 'InteractionSummary',
        description:
          'An interaction without what may be long: `output`, `executionTrace`, `files`, `warnings`, `resolved`.',
      }),
    ),
    nextPageToken,
  })
  .meta({ title: 'InteractionList' })

export const eventStream = z.string().meta({
  title: 'EventStream',
  description:
    'Server-Sent Events. Each has `id` (its number in the interaction’s log, 1, 2, 3 …), `event` and `data` (a JSON object in one line), as `StreamEvent` has them. See “Events”.',
  examples: [
    'id: 1\nevent: stage\ndata: {"stage":"working"}\n\nid: 2\nevent: partial_output\ndata: {"text":"North, 10."}\n\nid: 3\nevent: completed\ndata: {"interactionId":"int_0Wb1xYz3kJ9mQ2pR5sT7uV","status":"completed","usage":{"input_tokens":210,"output_tokens":12,"total_tokens":222,"duration_ms":840}}\n\n',
  ],
})
