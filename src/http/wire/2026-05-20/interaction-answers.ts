/** Interactions in revision 2026-05-20: answer schemas, which tests check every answer against, and encoding. */
import { z } from 'zod'
import type { InteractionView, TraceStep } from '../../../domain/fold.ts'
import type { Interaction, InteractionSummary, StoredFile } from '../../../domain/interaction.ts'
import type { Usage } from '../../../domain/usage.ts'
import type { FileKind } from '../../response/signed-urls.ts'
import type { Body, Form, InteractionCodec, Presentation } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { labelAnswers, nextPageToken, time, warning } from './common-fields.ts'
import { encodeSettings, settingAnswers } from './settings.ts'
import { encodePins } from './skills.ts'
import { encodeUsage, fullUsage } from './usage.ts'

export const args = z
  .union([z.record(z.string(), z.unknown()), z.string()])
  .meta({ description: 'An object. In the short form, the same object as JSON text.' })

export const fullResult = z.object({ path: z.string(), bytes: z.int().min(0) }).meta({
  title: 'FullResult',
  description:
    'The file in the sandbox with the whole text of a long result. The model got its beginning and end. `output` has the text up to `policy.sandbox.outputBytes`.',
})

const step = z.int().min(1)
export const callId = z.string().meta({
  description: 'Identifies a tool call. Its result has the same one. Unique among the calls of one reply.',
})
export const via = z.int().min(1).meta({
  description: 'Step of the code_execution call whose code made this call. The model does not get its result.',
})
/** Each variant has a title: generated clients name its type by it. */
const traceStep = z
  .discriminatedUnion('type', [
    z.object({ step, type: z.literal('reasoning'), content: z.string() }).meta({ title: 'ReasoningStep' }),
    z
      .object({
        step,
        type: z.literal('tool_call'),
        name: z.string(),
        args,
        callId: callId.optional(),
        via: via.optional(),
      })
      .meta({ title: 'ToolCallStep' }),
    z
      .object({
        step,
        type: z.literal('tool_result'),
        output: z.string(),
        duration_ms: z.int().optional(),
        callId: callId.optional(),
        via: via.optional(),
        full: fullResult.optional(),
      })
      .meta({ title: 'ToolResultStep' }),
  ])
  .meta({
    title: 'TraceStep',
    description:
      'One step of the run. A tool call and its result have one `step` number each. If one reply of the model has several calls, these and their results have a `callId`; otherwise each result follows its call.',
  })

const file = {
  url: z
    .string()
    .meta({ description: 'Signed download URL, valid for one hour. Needs no API key. Each read returns a new one.' }),
  size: z.int().meta({ description: 'Bytes.' }),
  mimeType: z.string(),
  sha256: z.string(),
}
const outputFile = z
  .object({ name: z.string().meta({ description: 'Path below `outputs/` in the working directory.' }), ...file })
  .meta({ title: 'OutputFile', description: 'A file that the agent wrote.' })
const inputFile = z
  .object({ name: z.string().meta({ description: 'Path in the working directory.' }), ...file })
  .meta({ title: 'StoredInputFile', description: 'An input file of the run.' })

const status = z.enum(['running', 'completed', 'failed', 'cancelled']).meta({
  description: '`running` changes once, to one of the others, which are final.',
})

export const runError = z
  .object({ code: z.string(), message: z.string(), status: z.int(), retryable: z.boolean() })
  .meta({ title: 'RunError', description: 'Why a run failed.' })

export const stage = z
  .enum(['queued', 'provisioning', 'working', 'requires_action', 'settling'])
  .meta({ description: 'What a `running` interaction is doing.' })

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
      'Why a completed run ended. With `max_…` and `budget_exceeded` it reached that limit: its output is truncated, or is the answer that the model gave when it was asked to finish.',
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
      'The earlier interaction with the same `Idempotency-Key`, which failed with a retryable error. This is a new run.',
  }),
  labels: labelAnswers,
  createTime: time(),
  endTime: time().optional(),
  stopReason: stopReason.optional(),
  error: runError.optional(),
  usage: fullUsage,
}

export const interaction = z
  .object({
    ...summary,
    output: z.string().meta({
      description:
        'The answer. The same text as all `partial_output` fragments of the stream joined; with `output: "final"` in the request, only that of the last turn with text.',
    }),
    executionTrace: z.array(traceStep),
    files: z.array(outputFile),
    warnings: z.array(warning),
    pendingApprovals: z
      .array(z.object({ step: z.int().min(1), name: z.string(), args }))
      .optional()
      .meta({ description: 'Tool calls that wait for a person, in stage `requires_action`. Decide with `:approve`.' }),
    resolved: z
      .object({
        ...settingAnswers,
        skills: settingAnswers.skills.meta({ description: 'With the version: `pdf@3`.' }),
        skillDigests: z
          .record(z.string(), z.string())
          .optional()
          .meta({ description: 'SHA-256 digest of each skill’s content, by its entry in `skills`.' }),
        output: z.literal('final').optional().meta({ description: 'As in the request.' }),
        responseFormat: z
          .record(z.string(), z.unknown())
          .optional()
          .meta({ description: 'The JSON Schema that the answer must match.' }),
        files: z
          .array(inputFile)
          .meta({ description: 'Input files. A file by URL is listed once it has been fetched.' }),
      })
      .meta({ description: 'The settings of the run: agent, request and defaults, merged when the run was accepted.' }),
  })
  .meta({ title: 'Interaction', description: 'One run of an agent.' })

const interactionList = z
  .object({
    interactions: z.array(
      z.object(summary).meta({
        title: 'InteractionSummary',
        description:
          'An interaction without the fields that can be long: `output`, `executionTrace`, `files`, `warnings`, `resolved`.',
      }),
    ),
    nextPageToken,
  })
  .meta({ title: 'InteractionList' })

const eventStream = z.string().meta({
  title: 'EventStream',
  description:
    'Server-Sent Events. Each has `id` (its number in the interaction’s log: 1, 2, 3 …), `event` and `data` (a JSON object on one line). `StreamEvent` describes them. See “Events”.',
  examples: [
    'id: 1\nevent: stage\ndata: {"stage":"working"}\n\nid: 2\nevent: partial_output\ndata: {"text":"North, 10."}\n\nid: 3\nevent: completed\ndata: {"interactionId":"int_0Wb1xYz3kJ9mQ2pR5sT7uV","status":"completed","usage":{"input_tokens":210,"output_tokens":12,"total_tokens":222,"duration_ms":840}}\n\n',
  ],
})

export const interactionAnswerSchemas = { interaction, interactionList, eventStream }

export const interactionEncoders: Omit<InteractionCodec, 'decodeNew'> = {
  encode: ({ interaction, view, usage }, presentation) => ({
    ...encodeSummary(interaction, usage, presentation.form),
    ...encodeView(interaction, view, presentation),
  }),
  encodeList: (items, form, nextPageToken) => ({
    interactions: items.map((item) => encodeSummary(item.interaction, item.usage, form)),
    nextPageToken,
  }),
}

export function encodeSummary(interaction: InteractionSummary, usage: Usage, form: Form): Body {
  const { spec } = interaction
  return {
    interactionId: interaction.id,
    id: interaction.id,
    status: interaction.status,
    stage: interaction.status === 'running' ? interaction.stage : undefined,
    agentId: spec.agentId,
    agentVersion: spec.agentVersion,
    model: spec.model,
    instruction: spec.instruction,
    previousInteractionId: spec.previousInteractionId,
    retryOf: spec.retryOf,
    labels: interaction.labels,
    createTime: rfc3339(interaction.createdAt),
    endTime: interaction.endedAt === undefined ? undefined : rfc3339(interaction.endedAt),
    stopReason: interaction.stopReason,
    error: interaction.error,
    usage: encodeUsage(usage, form),
  }
}

function encodeView(interaction: Interaction, view: InteractionView, { form, fileUrl }: Presentation): Body {
  const { skills, responseFormat, output, inputFiles } = interaction.spec
  const encodeFile = (kind: FileKind) => (file: StoredFile) => {
    const { name, size, mimeType, sha256 } = file
    return { name, url: fileUrl(kind, file), size, mimeType, sha256 }
  }
  return {
    output: view.output,
    executionTrace: view.trace.map((step) => encodeStep(step, form)),
    files: interaction.outputFiles.map(encodeFile('output')),
    warnings: view.warnings,
    pendingApprovals:
      view.pendingApprovals.length > 0
        ? view.pendingApprovals.map((call) => ({ ...call, args: encodeArgs(call.args, form) }))
        : undefined,
    resolved: {
      ...encodeSettings(interaction.spec),
      ...encodePins(skills),
      responseFormat,
      output,
      files: inputFiles.map(encodeFile('input')),
    },
  }
}

function encodeStep(step: TraceStep, form: Form): Body {
  return step.type === 'tool_call' ? { ...step, args: encodeArgs(step.args, form) } : { ...step }
}

export function encodeArgs(args: Readonly<Record<string, unknown>>, form: Form): string | typeof args {
  return form === 'short' ? JSON.stringify(args) : args
}
