/** The request that starts an interaction, in revision 2026-05-20: schema and decoding. */
import { z } from 'zod'
import type { Limits } from '../../../domain/limits.ts'
import { check, unknownFields, wrongField } from '../../request/fields.ts'
import type { NewInteractionRequest } from '../codec.ts'
import { labelRequests, MAX_NAME_CHARS, MAX_URL_CHARS, text, withoutNulls } from './common-fields.ts'
import { decodeFiles, inputFileRequest } from './input-files.ts'
import { decodeResponseFormat, responseFormatRequest } from './response-format.ts'
import { decodeSettings, settingRequests, settingsIn } from './settings.ts'

const NO_READ_ONLY_FIELDS = new Set<string>()

export function newInteractionSchema(limits: Limits) {
  return z
    .object({
      instruction: text(limits.instructionChars)
        .min(1)
        .meta({
          description: 'The task for the agent, in natural language.',
          examples: ['Which region sold most in sales.csv? Answer with its name and total.'],
        }),
      agentId: text(MAX_NAME_CHARS).min(1).nullish().meta({
        description:
          'The stored agent to run. Settings in this request override the agent’s: each replaces the whole field (`[]` clears a list), `policy` overrides key by key.',
      }),
      agentVersion: z.int().min(1).nullish().meta({ description: 'A version of the agent. Absent: the newest.' }),
      ...settingRequests(limits),
      files: z
        .array(inputFileRequest())
        .max(limits.files)
        .nullish()
        .meta({
          description: `Up to ${limits.files} files to put into the working directory before the first model call. Inline content may have ${mib(limits.inlineFilesBytes)} in total.`,
        }),
      labels: labelRequests(limits)
        .nullish()
        .meta({ description: `Up to ${limits.labels} key-value pairs to find the interaction by.` }),
      responseFormat: responseFormatRequest.nullish(),
      output: z.enum(['all', 'final']).nullish().meta({
        description:
          'Text in `output`: of all turns of the model (`all`, the default), or of the last turn with text (`final`). Streams always have all of it.',
      }),
      previousInteractionId: text(MAX_NAME_CHARS).min(1).nullish().meta({
        description:
          'An ended interaction whose conversation to continue. The sandbox is new; files are not carried over.',
      }),
      stream: z.boolean().nullish().meta({ description: 'Respond with an event stream, as `:stream` does.' }),
      background: z.boolean().nullish().meta({ description: 'Respond immediately, while the run continues.' }),
      onDisconnect: z.enum(['continue', 'cancel']).nullish().meta({
        description: 'What happens to the run if the caller disconnects while it waits or streams. Default `continue`.',
      }),
      webhook: z
        .object({ url: text(MAX_URL_CHARS).min(1) })
        .nullish()
        .meta({
          description:
            'URL to notify when the interaction ends. It gets a signed POST (Standard Webhooks) at least once: `interaction.completed`, `interaction.failed` or `interaction.cancelled`, with the short interaction as `data`. Responses other than 2xx are retried for a day. See docs/webhooks.md.',
          examples: [{ url: 'https://hooks.example.com/errand' }],
        }),
    })
    .meta({
      title: 'NewInteraction',
      description:
        'A run to start. Name a stored agent (`agentId`), or give the settings inline (model, tools …), or both. `null` is the same as absent.',
      examples: [
        {
          instruction: 'Which region sold most in sales.csv? Answer with its name and total.',
          tools: ['code_execution', 'file_read'],
          files: [{ name: 'sales.csv', content: 'region,total\nnorth,10\nsouth,7\n' }],
          policy: { maxTurnDuration: 120 },
        },
      ],
    })
}

/** Throws ErrandError `invalid_request`, `payload_too_large`. */
export function decodeNewInteraction(
  body: unknown,
  { schema, limits, revision }: { schema: ReturnType<typeof newInteractionSchema>; limits: Limits; revision: string },
): NewInteractionRequest {
  const fields = withoutNulls(check(schema, body))
  const { instruction, agentId, agentVersion, previousInteractionId, responseFormat, webhook } = fields
  if (agentVersion !== undefined && agentId === undefined) {
    throw wrongField('agentVersion', 'needs `agentId`, which is absent')
  }
  return {
    run: {
      instruction,
      agentId,
      agentVersion,
      settings: decodeSettings(settingsIn(fields), limits),
      labels: withoutNulls(fields.labels ?? {}),
      files: decodeFiles(fields.files ?? [], limits.inlineFilesBytes),
      responseFormat: responseFormat && decodeResponseFormat(responseFormat),
      output: fields.output === 'final' ? 'final' : undefined,
      previousInteractionId,
      onDisconnect: fields.onDisconnect ?? 'continue',
      webhook: webhook && { url: webhook.url, revision },
      warnings: unknownFields(schema, body, NO_READ_ONLY_FIELDS),
    },
    stream: fields.stream ?? false,
    background: fields.background ?? false,
  }
}

function mib(bytes: number): string {
  return `${Math.round((bytes / 1024 / 1024) * 10) / 10} MiB`
}
