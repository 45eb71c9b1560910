/** What this server is, as a caller may know it: no directory of the operator's, no address of a provider, no key. */
import { z } from 'zod'
import type { ToolName } from '../../domain/agent.ts'
import type { Limits } from '../../domain/limits.ts'
import type { Catalogue, ModelDescription, ModelHealth } from '../../models/port.ts'
import type { SandboxFacts } from '../../sandbox/port.ts'
import type { Body } from './codec.ts'
import { rfc3339 } from './time.ts'

/** As found at start; `doctor` and the start log tell the same. */
export interface ServerFacts {
  readonly version: string
  readonly sandbox: SandboxFacts
  readonly tools: readonly ToolName[]
  /** The specification's other tools, each with what the operator can do about it. */
  readonly missingTools: readonly { readonly name: ToolName; readonly remedy: string }[]
  /** Who searches the web: `searxng`, `brave`, …; `model`: the models' own providers. */
  readonly search: string | undefined
}

const sandbox = z.object({
  driver: z.string().meta({ examples: ['bubblewrap'] }),
  enforced: z
    .array(z.string())
    .meta({ description: 'What holds: a topic, a colon, how.', examples: [['memory: 512 MiB (cgroup v2)']] }),
  notEnforced: z
    .array(z.string())
    .meta({ description: 'What does not hold on this host, and what the operator can do about it.' }),
  attacks: z
    .object({
      tried: z.int().min(0),
      refused: z.int().min(0),
      open: z
        .array(z.object({ name: z.string(), detail: z.string().optional() }))
        .meta({ description: 'Those that came through.' }),
    })
    .meta({ description: 'The attacks that the driver made on a sandbox of its own when the server started.' }),
  inside: z.string().meta({ description: 'What code finds inside.', examples: ['Python 3.11, Node 24, bash, git'] }),
  browser: z.boolean().meta({ description: 'Whether there is a Chromium inside.' }),
})

const health = z
  .object({
    state: z.enum(['untried', 'up', 'failing', 'resting']).meta({
      description:
        '`failing`: the last call failed; `resting`: calls failed again and again, and the provider is left alone until `restsUntil`.',
    }),
    failures: z.int().min(0).meta({ description: 'Calls in a row that failed by the provider’s trouble.' }),
    lastFailure: z.object({ message: z.string(), time: z.string() }).optional(),
    restsUntil: z.string().optional(),
  })
  .meta({ description: 'How its provider did lately, as far as this process has called it.' })

const model = z.object({
  name: z.string().meta({ examples: ['svc-3.5-flash'] }),
  provider: z.string().meta({ examples: ['anthropic'] }),
  source: z.string().meta({ description: 'How the server came to have it.', examples: ['errand.yaml'] }),
  demo: z.boolean().meta({ description: 'The built-in demo model stands in for a real one.' }),
  vision: z.boolean().meta({ description: 'It can be shown images.' }),
  documents: z.boolean().meta({ description: 'It can be shown PDFs, whole.' }),
  fallbacks: z.array(z.string()).optional().meta({
    description: 'The models that are asked, in this order, where this one fails before it has said anything.',
  }),
  unavailable: z.string().optional().meta({ description: 'Why it can’t be called, and what to do.' }),
  health: health.optional().meta({ description: 'Absent where it can’t be called, or can’t fail.' }),
})

const tools = z.object({
  available: z.array(z.string()),
  missing: z
    .array(z.object({ name: z.string(), remedy: z.string().meta({ description: 'What the operator can do.' }) }))
    .meta({ description: 'A run that names one of these gets a warning.' }),
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
  .meta({ description: 'As this server’s operator has set them; `…S` are seconds.' })

export const server = z
  .object({
    version: z.string(),
    sandbox: sandbox.meta({ description: 'What isolates runs on this host, and what does not.' }),
    models: z.array(model),
    defaultModel: z.string(),
    tools,
    search: z
      .string()
      .optional()
      .meta({ description: 'Who searches the web; absent: nobody.', examples: ['searxng'] }),
    limits,
  })
  .meta({ title: 'Server', description: 'What this server is.' })

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
  // `Ollama at 127.0.0.1:11434`: where it is concerns the operator alone.
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
