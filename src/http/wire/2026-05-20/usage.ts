/** `usage` in revision 2026-05-20. */
import { z } from 'zod'
import type { Usage } from '../../../domain/usage.ts'
import type { Form } from '../codec.ts'

export const fullUsage = z
  .object({
    input_tokens: z.int(),
    output_tokens: z.int(),
    total_tokens: z.int().optional().meta({ description: '`input_tokens + output_tokens`.' }),
    duration_ms: z
      .int()
      .optional()
      .meta({ description: 'Time from acceptance to the end of the run, in milliseconds.' }),
    cached_input_tokens: z.int().optional().meta({
      description: 'Part of `input_tokens` that the provider read from its prompt cache.',
    }),
    cache_write_tokens: z.int().optional().meta({
      description: 'Part of `input_tokens` that the provider wrote to its prompt cache.',
    }),
    reasoning_tokens: z.int().optional().meta({ description: 'Included in `output_tokens`.' }),
    model_calls: z.int().optional(),
    tool_calls: z.int().optional(),
    sandbox_ms: z.int().optional().meta({ description: 'Time for which the run had a sandbox, in milliseconds.' }),
    cost: z
      .object({ amount: z.string().meta({ examples: ['0.0123'] }), currency: z.string() })
      .optional()
      .meta({ description: 'Present if the model has a price.' }),
  })
  .meta({
    title: 'Usage',
    description:
      'Resources that the run has used so far, also if it failed or was cancelled. The short form has only `input_tokens` and `output_tokens`.',
  })

export const shortUsage = z.object({ input_tokens: z.int(), output_tokens: z.int() })

export function encodeUsage(usage: Usage, form: Form): Usage | z.output<typeof shortUsage> {
  if (form === 'full') return usage
  const { input_tokens, output_tokens } = usage
  return { input_tokens, output_tokens }
}
