/**
 * Revision 2026-05-20, inward: the request schemas, which validate and are what the OpenAPI document shows.
 * Every optional field takes `null`: absent on creation, cleared on PATCH. Ranges and bounds are the operator's limits.
 */
import { z } from 'zod'
import { TOOL_NAMES } from '../../domain/agent.ts'
import type { Limits, Range, SandboxLimits } from '../../domain/limits.ts'
import { networkSchema } from './network.ts'
import { authentication } from './secrets.ts'

const MAX_NAME_CHARS = 128
const MAX_DISPLAY_NAME_CHARS = 512
const MAX_DESCRIPTION_CHARS = 10_000
const MAX_URL_CHARS = 4096
const MAX_MCP_TOOLS = 128

export function createRequestSchemas(limits: Limits) {
  const settings = settingFields(limits)
  const agent = {
    displayName: text(MAX_DISPLAY_NAME_CHARS)
      .nullish()
      .meta({
        description: 'Human-readable name.',
        examples: ['Sales analyst'],
      }),
    description: text(MAX_DESCRIPTION_CHARS).nullish().meta({ description: 'Free-text description.' }),
    ...settings,
    labels: labels(limits)
      .nullish()
      .meta({
        description: `Up to ${limits.labels} key-value pairs to find the agent by.`,
        examples: [{ team: 'sales' }],
      }),
  }
  const id = z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,62}$/, {
      error: 'must be 1 to 63 lower-case letters, digits or hyphens, the first one a letter',
    })
    .nullish()
    .meta({
      description: 'An id of your own choice. Absent: the server makes one. Taken: 409.',
      examples: ['sales-analyst'],
    })
  return {
    newAgent: z.object({ id, ...agent }).meta({
      title: 'NewAgent',
      description: 'An agent to be stored. Nothing is required. `null` is the same as absent.',
      examples: [
        {
          id: 'sales-analyst',
          displayName: 'Sales analyst',
          systemInstruction: 'Answer in one sentence.',
          model: 'svc-3.5-flash',
          tools: ['code_execution', 'file_read'],
          policy: { maxTurnDuration: 300 },
        },
      ],
    }),
    agentPatch: z.object(agent).meta({
      title: 'AgentPatch',
      description:
        'A merge patch (RFC 7396): what is absent stays, `null` clears, lists are replaced whole; `policy` and `labels` merge key by key.',
      examples: [{ systemInstruction: 'Answer in two sentences.', policy: { maxTurnDuration: null } }],
    }),
    newInteraction: newInteraction(limits, settings),
  }
}

function newInteraction(limits: Limits, settings: ReturnType<typeof settingFields>) {
  return z
    .object({
      instruction: text(limits.instructionChars)
        .min(1)
        .meta({
          description: 'What the agent is to do, in natural language.',
          examples: ['Which region sold most in sales.csv? Answer with its name and total.'],
        }),
      agentId: text(MAX_NAME_CHARS).min(1).nullish().meta({
        description:
          'A stored agent to run as. A setting beside it replaces the agent’s whole field (`[]` clears it); `policy` overrides key by key.',
      }),
      agentVersion: whole(1).nullish().meta({ description: 'Pins a version of the agent. Absent: the newest.' }),
      ...settings,
      files: z
        .array(inputFile())
        .max(limits.files)
        .nullish()
        .meta({
          description: `Up to ${limits.files} files that lie in the working directory before the first model call; ${mib(limits.inlineFilesBytes)} in all.`,
        }),
      labels: labels(limits)
        .nullish()
        .meta({ description: `Up to ${limits.labels} key-value pairs to find the interaction by.` }),
      responseFormat: z
        .record(z.string(), z.unknown())
        .nullish()
        .meta({
          description:
            'A JSON Schema (draft 2020-12, or draft-07 where `$schema` says so) that the answer, then JSON, must satisfy. Bare, or as `{"type": "json_schema", "schema": …}`. At most 64 KiB.',
          examples: [{ type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }],
        }),
      previousInteractionId: text(MAX_NAME_CHARS).min(1).nullish().meta({
        description: 'Goes on from an ended interaction’s conversation. The sandbox is a new one all the same.',
      }),
      stream: z.boolean().nullish().meta({ description: 'Answer with an event stream, as `:stream` does.' }),
      background: z.boolean().nullish().meta({ description: 'Answer at once, while the run goes on.' }),
      onDisconnect: z.enum(['continue', 'cancel']).nullish().meta({
        description:
          'What happens when a waiting or streaming caller goes away: the run goes on (`continue`, the default), or is cancelled.',
      }),
      webhook: z
        .object({ url: text(MAX_URL_CHARS).min(1) })
        .nullish()
        .meta({
          description:
            'Where the interaction’s end is told by a signed POST (Standard Webhooks), at least once: `interaction.completed`, `interaction.failed` or `interaction.cancelled`, with the short interaction as `data`. Anything but 2xx is tried again for a day. See docs/webhooks.md.',
          examples: [{ url: 'https://hooks.example.com/errand' }],
        }),
    })
    .meta({
      title: 'NewInteraction',
      description:
        'What is to be run: inline (instruction, model, tools, files …), or by a stored agent (`agentId` and instruction), or both. `null` is the same as absent.',
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

/** What an agent stores and an interaction may say for itself. */
function settingFields(limits: Limits) {
  return {
    systemInstruction: text(limits.systemInstructionChars)
      .nullish()
      .meta({ description: 'Standing instruction for the agent.', examples: ['Answer in one sentence.'] }),
    model: text(MAX_NAME_CHARS)
      .min(1)
      .nullish()
      .meta({
        description: 'A model of this server’s catalogue. Unknown: 400 with the names there are.',
        examples: ['svc-3.5-flash', 'svc-3.1-pro'],
      }),
    tools: z
      .array(text(MAX_NAME_CHARS))
      .max(limits.tools)
      .nullish()
      .meta({
        description: `Tools to enable: ${TOOL_NAMES.map((name) => `\`${name}\``).join(', ')}. Another name is ignored and told in \`warnings\`.`,
        examples: [['code_execution', 'file_read']],
      }),
    skills: z
      .array(text(MAX_NAME_CHARS).min(1))
      .max(limits.skills)
      .nullish()
      .meta({
        description:
          'Names of registered skills: `pdf` (its newest version) or `pdf@3`. An unknown one is ignored and told in `warnings`.',
        examples: [['pdf', 'house-style@3']],
      }),
    mcp: z.array(mcpServer()).max(limits.mcp).nullish().meta({
      description:
        'MCP servers whose tools the agent may use, as `server__tool`. One that can’t be used is told in `warnings`, and the run goes on without it.',
    }),
    network: networkSchema(limits.network).nullish(),
    policy: policy(limits)
      .nullish()
      .meta({ description: 'Limits of a run: time, output tokens, cost, what its sandbox may use.' }),
  }
}

function policy(limits: Limits) {
  return z
    .object({
      maxTurnDuration: range(limits.maxTurnDuration, ' seconds')
        .nullish()
        .meta({
          description: `Longest run time, seconds. Default ${limits.maxTurnDuration.default}. Over it, the run fails with \`deadline_exceeded\`.`,
        }),
      maxOutputTokens: range(limits.maxOutputTokens, ' tokens')
        .nullish()
        .meta({
          description: `Most output tokens over the whole run, reasoning included. Default ${limits.maxOutputTokens.default}. Once reached, the run completes with what there is and \`stopReason: "max_output_tokens"\`.`,
        }),
      maxCost: z
        .number()
        .gt(0)
        .max(1_000_000)
        .nullish()
        .meta({ description: 'Most US dollars over the whole run, for models with a price. No default.' }),
      maxToolDuration: range(limits.maxToolDuration, ' seconds')
        .nullish()
        .meta({
          description: `Longest time of one tool call, seconds. Default ${limits.maxToolDuration.default}. Over it the call is stopped, the model is told, and the run goes on.`,
        }),
      sandbox: sandboxPolicy(limits.sandbox).nullish(),
    })
    .meta({ title: 'Policy', description: 'Limits of a run. What is left out takes the server’s default.' })
}

function sandboxPolicy(limits: Limits['sandbox']) {
  const field = (name: keyof SandboxLimits, what: string, unit = '', fractions = false) => {
    const schema = fractions ? between(z.number(), limits[name], unit) : range(limits[name], unit)
    return schema.nullish().meta({ description: `${what} Default ${limits[name].default}.` })
  }
  return z
    .object({
      memoryMiB: field('memoryMiB', 'Memory, MiB; the workspace’s files count.', ' MiB'),
      cpus: field('cpus', 'Processor cores, fractions allowed.', ' cores', true),
      pids: field('pids', 'Processes and threads.'),
      workspaceMiB: field('workspaceMiB', 'Size of the workspace, MiB.', ' MiB'),
      files: field('files', 'Files and directories in the workspace.'),
      outputBytes: field(
        'outputBytes',
        'Output kept of one tool call, bytes; the middle of a longer one is cut.',
        ' bytes',
      ),
    })
    .meta({
      title: 'SandboxPolicy',
      description:
        'What a sandbox of the run may use. Which limit ended a step is told to the model, and in the trace.',
      examples: [{ memoryMiB: limits.memoryMiB.max, pids: limits.pids.max }],
    })
}

function inputFile() {
  return z
    .object({
      name: text(1024)
        .min(1)
        .meta({
          description: 'Relative path in the working directory, `/` between its parts.',
          examples: ['data/sales.csv'],
        }),
      content: z.string().nullish().meta({ description: 'The content, in `encoding`.' }),
      encoding: z
        .enum(['utf-8', 'base64'])
        .nullish()
        .meta({ description: 'How `content` is written. Default `utf-8`.' }),
      data: z.string().nullish().meta({ description: 'The content in base64, instead of `content`.' }),
      url: text(MAX_URL_CHARS)
        .nullish()
        .meta({
          description:
            'An https address, or `s3://bucket/key` or `gs://bucket/object` in a bucket that the operator opened; fetched when the run starts, redirects are followed. Private addresses are refused. What can’t be had ends the run with `file_unavailable`.',
          examples: ['https://files.example.com/sales.csv'],
        }),
      mimeType: z
        .string()
        .max(255)
        .regex(/^[\w.+-]+\/[\w.+-]+(\s*;.*)?$/, { error: 'must be a media type such as text/csv' })
        .nullish()
        .meta({ description: 'Media type.', examples: ['text/csv'] }),
    })
    .meta({
      title: 'InputFile',
      description: 'A file for the sandbox. Exactly one of `content`, `data`, `url`.',
      examples: [{ name: 'sales.csv', content: 'region,total\nnorth,10\n' }],
    })
}

function mcpServer() {
  return z
    .object({
      name: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
          error: 'must be 1 to 64 letters, digits, dots, hyphens or underscores, the first one a letter or digit',
        })
        .meta({
          description:
            'Names the server, and its tools before the model: `name__tool`. Without `url`, one that the operator registered.',
        }),
      url: text(MAX_URL_CHARS)
        .min(1)
        .nullish()
        .meta({ description: 'Address of a Streamable HTTP endpoint. Private addresses are refused.' }),
      authentication: authentication.nullish().meta({
        description:
          'How to sign in: `none`, `bearer`, `headers`, `basic`, `oauth2` (an access token is renewed by `refreshToken` or the client’s own credentials, also in the middle of a run; without any of them the server is asked for one, which ends well where no person has to agree), or `credential`. A bare string is a bearer token. Write-only, and sent to this server’s own origin alone. A stored agent refers to a credential and holds no secret.',
      }),
      allowedTools: z
        .array(text(MAX_NAME_CHARS).min(1))
        .max(MAX_MCP_TOOLS)
        .nullish()
        .meta({ description: 'The server’s tools that may be used. Absent: all.' }),
      requireApproval: z
        .union(
          [z.boolean(), z.enum(['always', 'never', 'unless_skill']), z.array(text(MAX_NAME_CHARS)).max(MAX_MCP_TOOLS)],
          {
            error: 'must be true, false, "always", "never", "unless_skill", or a list of tool names',
          },
        )
        .nullish()
        .meta({
          description:
            'Whether a person has to agree before a tool is used; or the tools for which that holds; or `unless_skill`: for all but those that an enabled skill names in its `allowed-tools`.',
        }),
    })
    .meta({ title: 'McpServer', description: 'An MCP server.' })
}

function labels(limits: Limits) {
  const key = z
    .string()
    .min(1, { error: 'has a label with an empty name' })
    .max(limits.labelKeyChars, { error: `has a label whose name is longer than ${limits.labelKeyChars} characters` })
    .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'has a label with a control character in its name' })
    .refine((name) => name.isWellFormed(), { error: 'has a label whose name is not Unicode (a lone surrogate)' })
  const value = z
    .string()
    .max(limits.labelValueChars)
    .regex(/^[^\u0000]*$/, { error: 'must not contain a NUL character' })
    .refine((text) => text.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })
  return z.record(key, value.nullable()).refine((entries) => Object.keys(entries).length <= limits.labels, {
    error: `may have at most ${limits.labels} entries`,
  })
}

function text(maxChars: number) {
  return z.string().max(maxChars)
}

function whole(min: number) {
  return z.int().min(min)
}

/** Both ends stand in the message, whichever was passed. */
function range(limit: Range, unit: string) {
  return between(z.int(), limit, unit)
}

function between<N extends z.ZodNumber>(number: N, limit: Range, unit: string): N {
  const error = `must be from ${limit.min.toLocaleString('en')} to ${limit.max.toLocaleString('en')}${unit}`
  return number.min(limit.min, { error }).max(limit.max, { error })
}

function mib(bytes: number): string {
  return `${Math.round((bytes / 1024 / 1024) * 10) / 10} MiB`
}
