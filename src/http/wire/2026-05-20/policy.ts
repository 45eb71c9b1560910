/** `policy`, the limits of a run: its request schema, with the operator's ranges, and its answer schema. */
import { z } from 'zod'
import type { Limits, Range, SandboxLimits } from '../../../domain/limits.ts'

export const policyAnswer = z
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
      .meta({ title: 'SandboxPolicyAnswer', description: 'Limits of the run’s sandbox.' }),
    context: z
      .object({
        compactAt: z.number().optional(),
        keepTokens: z.int().optional(),
        instructions: z.string().optional(),
      })
      .optional()
      .meta({ title: 'ContextPolicyAnswer', description: 'How a long conversation is shortened for the model.' }),
  })
  .meta({ title: 'PolicyAnswer', description: 'Limits of a run, in seconds, tokens and US dollars.' })

export function policyRequest(limits: Limits) {
  return z
    .object({
      maxTurnDuration: wholeNumber(limits.maxTurnDuration, ' seconds')
        .nullish()
        .meta({
          description: `Maximum duration of the run, in seconds. Default ${limits.maxTurnDuration.default}. A run that takes longer fails with \`deadline_exceeded\`.`,
        }),
      maxOutputTokens: wholeNumber(limits.maxOutputTokens, ' tokens')
        .nullish()
        .meta({
          description: `Maximum output tokens of the whole run, including reasoning. Default ${limits.maxOutputTokens.default}. At the limit the run completes with the output so far and \`stopReason: "max_output_tokens"\`.`,
        }),
      maxCost: z
        .number()
        .gt(0)
        .max(1_000_000)
        .nullish()
        .meta({ description: 'Maximum cost of the whole run, in US dollars, for models with a price. No default.' }),
      maxToolDuration: wholeNumber(limits.maxToolDuration, ' seconds')
        .nullish()
        .meta({
          description: `Maximum duration of one tool call, in seconds. Default ${limits.maxToolDuration.default}. A call that takes longer is stopped, the model sees that, and the run continues.`,
        }),
      sandbox: sandboxPolicy(limits.sandbox).nullish(),
      context: contextPolicy(limits.context).nullish(),
    })
    .meta({ title: 'Policy', description: 'Limits of a run. Absent fields get the server’s default.' })
}

function sandboxPolicy(limits: Limits['sandbox']) {
  const field = (name: keyof SandboxLimits, what: string, unit = '', fractions = false) => {
    const schema = fractions ? between(z.number(), limits[name], unit) : wholeNumber(limits[name], unit)
    return schema.nullish().meta({ description: `${what} Default ${limits[name].default}.` })
  }
  return z
    .object({
      memoryMiB: field('memoryMiB', 'Memory in MiB, including the files in the workspace.', ' MiB'),
      cpus: field('cpus', 'Processor cores. Fractions are allowed.', ' cores', true),
      pids: field('pids', 'Number of processes and threads.'),
      workspaceMiB: field('workspaceMiB', 'Size of the workspace in MiB.', ' MiB'),
      files: field('files', 'Number of files and directories in the workspace.'),
      outputBytes: field(
        'outputBytes',
        'Maximum output kept of one tool call, in bytes. Longer output is truncated in the middle.',
        ' bytes',
      ),
    })
    .meta({
      title: 'SandboxPolicy',
      description: 'Limits of the run’s sandbox. If one stops a step, the model and the trace show which.',
      examples: [{ memoryMiB: limits.memoryMiB.max, pids: limits.pids.max }],
    })
}

const MAX_INSTRUCTIONS = 4_000

function contextPolicy({ compactAt, keepTokens }: Limits['context']) {
  return z
    .object({
      compactAt: between(z.number(), compactAt, ' of the context window')
        .nullish()
        .meta({
          description: `Share of the model’s context window at which older messages leave the model’s view. Default ${compactAt.default}.`,
        }),
      keepTokens: wholeNumber(keepTokens, ' tokens')
        .nullish()
        .meta({
          description: `Tokens of the latest messages that stay as they are, at most a third of the window. Default ${keepTokens.default}.`,
        }),
      instructions: z
        .string()
        .max(MAX_INSTRUCTIONS)
        .nullish()
        .meta({ description: 'What a summary of older messages must contain, in addition to the usual.' }),
    })
    .meta({
      title: 'ContextPolicy',
      description:
        'When and how a long conversation is shortened to fit the model’s context window. The trace keeps everything.',
      examples: [{ compactAt: 0.7, instructions: 'Keep all invoice numbers.' }],
    })
}

function wholeNumber(limit: Range, unit: string) {
  return between(z.int(), limit, unit)
}

/** The error message names both bounds, whichever was exceeded. */
function between<N extends z.ZodNumber>(number: N, limit: Range, unit: string): N {
  const error = `must be from ${limit.min.toLocaleString('en')} to ${limit.max.toLocaleString('en')}${unit}`
  return number.min(limit.min, { error }).max(limit.max, { error })
}

/** A policy without the fields that are `null`, on every level. */
export function withoutNullsBelow(value: object): object {
  const entries = Object.entries(value).filter(([, entry]) => entry !== null)
  return Object.fromEntries(
    entries.map(([key, entry]) => [key, typeof entry === 'object' ? withoutNullsBelow(entry) : entry]),
  )
}
