/** Schemas of the console's own API. */
import { z } from 'zod'
import { ROLES } from '../../accounts/members.ts'
import { SCOPES } from '../../accounts/scopes.ts'

const time = z.string().meta({ description: 'RFC 3339, UTC.' })
export const role = z.enum(ROLES).meta({
  description:
    '`owner`: may do everything. `developer`: everything except members, the service switch and budgets. `viewer`: may only read.',
})
export const accountParams = z.object({ accountId: z.string() })
export const projectParams = z.object({ projectId: z.string() })
export const name = z
  .string()
  .trim()
  .min(1)
  .max(128)
  .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not contain control characters' })
export const email = z.email({ error: 'must be an e-mail address' }).max(254)
export const token = z.string().max(200).meta({ description: 'Token after the `#` of the link.' })
export const password = z.string().max(1024).meta({ description: '12 to 128 characters, and not a common password.' })

export const project = z
  .object({ id: z.string(), name: z.string(), createTime: time })
  .meta({ title: 'Project', description: 'A project contains keys, agents and interactions.' })

export const me = z
  .object({
    user: z.object({ id: z.string(), name: z.string(), email: z.string(), createTime: time }),
    sessionId: z.string(),
    accounts: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        role,
        enabled: z.boolean().meta({ description: 'Whether the service is on for the account.' }),
        projects: z.array(project),
      }),
    ),
  })
  .meta({ title: 'Me', description: 'The signed-in user, with their accounts and projects.' })

export const session = z
  .object({
    id: z.string(),
    current: z.boolean(),
    createTime: time,
    lastUsedTime: time,
    expireTime: time,
    ipAddress: z.string().nullable(),
    userAgent: z.string().nullable(),
  })
  .meta({ title: 'Session' })

export const linkInfo = z
  .object({
    kind: z.enum(['welcome', 'invite', 'reset']),
    account: z.object({ name: z.string() }).nullable(),
    role: role.nullable(),
    email: z.string().nullable(),
    expireTime: time,
  })
  .meta({ title: 'OneTimeLink', description: 'Purpose of a one-time link.' })

export const oneTimeLink = z.object({
  link: z.string().meta({ description: 'Returned only once. Send it to the person who is to use it.' }),
  expireTime: time,
})

export const member = z
  .object({ userId: z.string(), name: z.string(), email: z.string(), role, joinTime: time })
  .meta({ title: 'Member' })
export const invite = z
  .object({ id: z.string(), role, createTime: time, expireTime: time })
  .meta({ title: 'Invite', description: 'An unused invitation.' })

export const settings = z.object({ experimental: z.object({ managedAgents: z.boolean() }) }).meta({
  title: 'AccountSettings',
  description: 'If the service is off, each call with the account’s keys gets 403 `feature_disabled`.',
})

export const logEntry = z
  .object({
    id: z.string(),
    time,
    actor: z
      .object({ userId: z.string(), email: z.string().nullable() })
      .nullable()
      .meta({ description: 'null: the server’s operator.' }),
    action: z.string().meta({ examples: ['key.created', 'member.joined', 'sign_in.failed'] }),
    target: z.string().nullable().meta({ description: 'Id of the object that was changed.' }),
    details: z.record(z.string(), z.string()),
  })
  .meta({ title: 'AccountLogEntry' })

export const scope = z.enum(SCOPES).meta({
  description:
    '`all`: everything in the project. `invoke`: may start interactions, and read, stream, cancel and approve those whose id it knows. `read`: may only read.',
})
export const key = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string().meta({ description: 'First characters of the key, by which people recognize it.' }),
    scope,
    createTime: time,
    lastUsedTime: time.nullable(),
    expireTime: time.nullable(),
    revokeTime: time.nullable(),
    state: z.enum(['valid', 'expired', 'revoked']),
  })
  .meta({ title: 'Key' })
export const issuedKey = z.object({
  key: z.string().meta({ description: 'The key. Returned only once.' }),
  info: key,
})

const milliseconds = z.number().nullable()
const usageFigures = z.object({
  runs: z.int(),
  failed: z.int(),
  cancelled: z.int(),
  inputTokens: z.int(),
  outputTokens: z.int(),
  cost: z
    .object({ amount: z.string(), currency: z.literal('USD') })
    .meta({ description: 'Cost of the models that have a configured price.' }),
  latencyMs: z.object({ p50: milliseconds, p95: milliseconds, p99: milliseconds }).meta({
    description: 'Time from acceptance to the end. Null if there were no runs.',
  }),
})
export const usageReport = z.object({
  from: z.string(),
  to: z.string(),
  rows: z.array(
    usageFigures.extend({
      day: z.string().optional(),
      projectId: z.string().optional(),
      projectName: z.string().nullish(),
      agentId: z.string().nullish().meta({ description: 'Null: runs without a stored agent.' }),
      model: z.string().nullish().meta({ description: 'The requested model.' }),
      keyId: z.string().optional().meta({ description: 'Id of the key, or of the user for runs from the console.' }),
      keyName: z.string().nullish(),
    }),
  ),
  total: usageFigures,
})

export const webhookState = z.enum(['pending', 'delivered', 'gone', 'failed']).meta({
  description:
    '`pending`: the interaction runs, or the delivery is still attempted. `gone`: the receiver refused further deliveries. `failed`: all attempts within a day failed.',
})
export const webhook = z
  .object({
    interactionId: z.string(),
    host: z
      .string()
      .meta({ description: 'Host of the receiver. The rest of the address may be a secret, and is not shown.' }),
    state: webhookState,
    attempts: z.int(),
    nextAttemptTime: time.nullable(),
    last: z
      .object({
        time,
        durationMs: z.int(),
        status: z.int().nullable().meta({ description: 'HTTP status of the receiver’s response, if there was one.' }),
        error: z.string().nullable(),
      })
      .nullable()
      .meta({ description: 'Latest attempt.' }),
  })
  .meta({ title: 'WebhookSummary', description: 'State of an interaction’s webhook.' })

export const mcpServer = z
  .object({
    name: z.string(),
    url: z.string().nullable(),
    kind: z.enum(['address', 'program', 'unknown']).meta({
      description:
        '`program`: a command that the operator registered, started for each run. `unknown`: no server of that name is registered.',
    }),
    registered: z.boolean().meta({ description: 'Whether the operator registered the server under this name.' }),
    credentialId: z.string().nullable().meta({ description: 'Credential for sign-in to the server.' }),
    agents: z
      .array(z.object({ id: z.string(), displayName: z.string().nullable() }))
      .meta({ description: 'Agents that use the server.' }),
  })
  .meta({ title: 'McpServerUse' })
export const mcpCheck = z
  .object({
    answers: z.boolean(),
    tools: z.array(z.object({ name: z.string(), description: z.string() })),
    problems: z.array(z.string()),
    durationMs: z.int(),
  })
  .meta({ title: 'McpServerCheck' })

export const model = z
  .object({
    name: z.string(),
    provider: z.string(),
    source: z.string().meta({ description: 'Source of the model’s configuration.' }),
    demo: z.boolean(),
    vision: z.boolean(),
    documents: z.boolean(),
    searches: z.boolean().meta({ description: 'Whether its provider can search the web.' }),
    price: z
      .object({ input: z.number(), output: z.number() })
      .nullable()
      .meta({ description: 'US dollars per million tokens.' }),
    fallbacks: z.array(z.string()),
    unavailable: z.string().nullable(),
    health: z
      .array(
        z.object({
          node: z.string().nullable().meta({ description: 'Name of the process. Null if there is only one.' }),
          state: z.enum(['untried', 'up', 'failing', 'resting']),
          failures: z.int(),
          lastFailure: z.object({ message: z.string(), time }).nullable(),
          restsUntil: time.nullable(),
        }),
      )
      .meta({ description: 'Health on each process that calls the model, a few seconds old.' }),
  })
  .meta({ title: 'ModelWithHealth' })

const alertAt = z.array(z.int().min(1).max(100)).max(10)
export const newBudget = z.object({
  monthlyCost: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,9})?$/, { error: 'must be a decimal, as "100.00"' })
    .nullable()
    .meta({ description: 'US dollars for a calendar month (UTC). Null: no budget.' }),
  alertAt: alertAt.optional().meta({ description: 'Percentages at which an alert is sent, in addition to 100.' }),
  hardStop: z
    .boolean()
    .optional()
    .meta({ description: 'Whether new interactions are refused and running ones stopped when the budget is spent.' }),
})
export const budgetAnswer = z.object({
  monthlyCost: z.string().nullable(),
  alertAt,
  hardStop: z.boolean(),
  spent: z.object({ amount: z.string(), currency: z.literal('USD') }),
  state: z.enum(['none', 'ok', 'alert', 'exceeded']),
})
