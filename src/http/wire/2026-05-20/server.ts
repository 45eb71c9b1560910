/** The server description in revision 2026-05-20. It shows no directory, no provider address and no key. */
import { z } from 'zod'
import type { Limits } from '../../../domain/limits.ts'
import type { Catalogue, ModelDescription, ModelHealth } from '../../../models/port.ts'
import type { ServerFacts } from '../../server-facts.ts'
import type { Body } from '../codec.ts'
import { rfc3339 } from '../time.ts'

const sandbox = z.object({
  driver: z.string().meta({ examples: ['bubblewrap'] }),
  enforced: z
    .array(z.string())
    .meta({ description: 'Limits that are enforced, as “topic: how”.', examples: [['memory: 512 MiB (cgroup v2)']] }),
  notEnforced: z
    .array(z.string())
    .meta({ description: 'Limits that this host does not enforce, and what the operator can do about each.' }),
  attacks: z
    .object({
      tried: z.int().min(0),
      refused: z.int().min(0),
      open: z
        .array(z.object({ name: z.string(), detail: z.string().optional() }))
        .meta({ description: 'Attacks that succeeded.' }),
    })
    .meta({ description: 'Test attacks on a sandbox, made when the server started.' }),
  inside: z.string().meta({ description: 'Software in the sandbox.', examples: ['Python 3.11, Node 24, bash, git'] }),
  browser: z.boolean().meta({ description: 'Whether the sandbox has Chromium.' }),
})

const health = z
  .object({
    state: z.enum(['untried', 'up', 'failing', 'resting']).meta({
      description:
        '`failing`: the last call failed. `resting`: calls failed repeatedly, and the model is not called until `restsUntil`.',
    }),
    failures: z.int().min(0).meta({ description: 'Consecutive calls that failed because of the provider.' }),
    lastFailure: z.object({ message: z.string(), time: z.string() }).optional(),
    restsUntil: z.string().optional(),
  })
  .meta({ description: 'Recent health of the model’s provider, as seen by this process.' })

const model = z.object({
  name: z.string().meta({ examples: ['svc-3.5-flash'] }),
  provider: z.string().meta({ examples: ['anthropic'] }),
  source: z
    .string()
    .meta({ description: 'Where the server’s configuration of the model comes from.', examples: ['errand.yaml'] }),
  demo: z.boolean().meta({ description: 'Whether this is the built-in demo model.' }),
  vision: z.boolean().meta({ description: 'Whether the model accepts images.' }),
  documents: z.boolean().meta({ description: 'Whether the model accepts PDFs.' }),
  fallbacks: z.array(z.string()).optional().meta({
    description: 'Fallback models, in order. They are called if this one fails before it has returned any output.',
  }),
  unavailable: z.string().optional().meta({ description: 'Why the model can’t be called, and what to do about it.' }),
  health: health.optional().meta({ description: 'Absent if the model can’t be called, or can’t fail.' }),
})

const tools = z.object({
  available: z.array(z.string()),
  missing: z
    .array(
      z.object({ name: z.string(), remedy: z.string().meta({ description: 'What the operator can do about it.' }) }),
    )
    .meta({ description: 'Tools that this server does not have. A run that names one gets a warning.' }),
})

const range = z.object({ default: z.number(), min: z.number(), max: z.number() })

const RANGES = ['maxTurnDuration', 'maxOutputTokens', 'maxToolDuration'] as const
const SANDBOX = ['memoryMiB', 'cpus', 'pids', 'workspaceMiB', 'files', 'outputBytes'] as const
const NUMBERS = [
  ...['interactionsPerMinute', 'callsPerMinute', 'runningPerProject', 'queuedPerProject', 'queueWaitS'],
  ...['bodyBytes', 'inlineFilesBytes', 'fileBytes', 'outputFilesBytes', 'networkBytes', 'skillBytes', 'retentionDays'],
  ...['tools', 'skills', 'mcp', 'files', 'labels', 'instructionChars', 'systemInstructionChars'],
] as (keyof Limits)[]

const limits = z
  .object({
    ...eachAs(RANGES, range),
    ...eachAs(NUMBERS, z.number()),
    sandbox: z.object(eachAs(SANDBOX, range)),
  })
  .meta({ description: 'Limits that the operator has set. Names that end in `S` are seconds.' })

export const server = z
  .object({
    version: z.string(),
    sandbox: sandbox.meta({ description: 'How runs are isolated on this host.' }),
    models: z.array(model),
    defaultModel: z.string(),
    tools,
    search: z
      .string()
      .optional()
      .meta({ description: 'The web search service. Absent: there is none.', examples: ['searxng'] }),
    limits,
  })
  .meta({ title: 'Server', description: 'The server: version, sandbox, models, tools and limits.' })

export function encodeServer(facts: ServerFacts, catalogue: Catalogue, all: Limits): Body {
  const { driver, enforced, notEnforced, probes, inside, browser } = facts.sandbox
  const open = probes.filter(({ refused }) => !refused)
  return {
    version: facts.version,
    sandbox: {
      driver,
      enforced,
      notEnforced,
      attacks: {
        tried: probes.length,
        refused: probes.length - open.length,
        open: open.map(({ name, detail }) => ({ name, detail })),
      },
      inside,
      browser: browser !== undefined,
    },
    models: catalogue.describe().map((model) => encodeModel(model, catalogue.get(model.name)?.health?.())),
    defaultModel: catalogue.defaultName,
    tools: { available: [...new Set(facts.tools)], missing: facts.missingTools },
    search: facts.search,
    limits: {
      ...picked(all, RANGES),
      sandbox: picked(all.sandbox, SANDBOX),
      ...picked(all, NUMBERS),
    },
  }
}

function encodeModel(description: ModelDescription, health: ModelHealth | undefined): Body {
  const { name, provider, source, demo, vision, documents, fallbacks, unavailable } = description
  // `Ollama at 127.0.0.1:11434` without the address, which callers must not see.
  return {
    name,
    provider,
    source: source.replace(/ at \S+$/, ''),
    demo,
    vision,
    documents,
    fallbacks,
    unavailable,
    health: health && encodeHealth(health),
  }
}

function encodeHealth({ state, failures, lastFailure, restsUntil }: ModelHealth): Body {
  return {
    state,
    failures,
    lastFailure: lastFailure && { message: lastFailure.message, time: rfc3339(lastFailure.at) },
    restsUntil: restsUntil === undefined ? undefined : rfc3339(restsUntil),
  }
}

function eachAs<K extends string, S>(keys: readonly K[], schema: S): Record<K, S> {
  return Object.fromEntries(keys.map((key) => [key, schema])) as Record<K, S>
}

function picked<T extends object>(from: T, keys: readonly (keyof T)[]): Body {
  return Object.fromEntries(keys.map((key) => [key, from[key]]))
}
