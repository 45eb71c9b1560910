/** A project's webhooks, MCP servers and models, for the console's pages. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Agent } from '../../domain/agent.ts'
import type { McpServer, RunMcpServer } from '../../domain/mcp.ts'
import type { WebhookSummary } from '../../domain/webhook.ts'
import type { ModelHealth } from '../../models/port.ts'
import { forSession } from '../openapi/route-docs.ts'
import { check } from '../request/fields.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { page, pageSizeOf } from '../request/queries.ts'
import { rfc3339 } from '../wire/time.ts'
import { CONSOLE, type ConsoleDependencies, PROJECT, projectFor } from './dependencies.ts'
import { mcpCheck, mcpServer, model, projectParams, webhook, webhookState } from './schemas.ts'

type OfProject = { Params: z.infer<typeof projectParams> }

const reads = { console: 'session' } as const
const shared = { tag: 'Console', params: projectParams, errors: ['not_found'] } as const
const CHECK_MS = 20_000
const AGENTS = 100

export function projectRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  webhookRoutes(app, dependencies)
  mcpRoutes(app, dependencies)
  modelRoutes(app, dependencies)
}

const webhookQuery = z.object({ ...page, state: webhookState.optional() })

function webhookRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  app.get<OfProject & { Querystring: z.infer<typeof webhookQuery> }>(
    `${PROJECT}/deliveries`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'listWebhooks',
        summary: 'List webhook deliveries',
        description:
          'Deliveries of all interactions of the project, newest first: receiver, result and time of the next attempt.',
        query: webhookQuery,
        answer: z.object({ deliveries: z.array(webhook), nextPageToken: z.string().optional() }),
      }),
    },
    async (request) => {
      const { id } = await projectFor(dependencies, request, request.params.projectId, 'viewer')
      const { state, pageToken } = request.query
      const identity = { path: `${id}/deliveries`, state }
      const { webhooks, next } = await dependencies.engine.webhooks(id, {
        state,
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, pageToken),
      })
      return { deliveries: webhooks.map(showWebhook), nextPageToken: writePageToken(identity, next) }
    },
  )
}

function showWebhook({ interactionId, host, state, attempts, nextAt, last }: WebhookSummary) {
  return {
    interactionId,
    host,
    state,
    attempts,
    nextAttemptTime: nextAt === undefined ? null : rfc3339(nextAt),
    last: last
      ? { time: rfc3339(last.at), durationMs: last.durationMs, status: last.status ?? null, error: last.error ?? null }
      : null,
  }
}

const checked = z.object({
  name: z.string().max(64),
  url: z.url().max(2_000).optional(),
  credentialId: z.string().max(64).optional(),
})

function mcpRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  app.get<OfProject>(
    `${PROJECT}/mcp-servers`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'listMcpServers',
        summary: 'List MCP servers',
        description: 'Lists the MCP servers that the project’s agents use and those that the operator registered.',
        answer: z.object({ servers: z.array(mcpServer) }),
      }),
    },
    async (request) => {
      const { id } = await projectFor(dependencies, request, request.params.projectId, 'viewer')
      return { servers: serversOf(await allAgents(dependencies, id), dependencies.mcpServers) }
    },
  )

  app.post<OfProject>(
    `${PROJECT}/mcp-servers/check`,
    {
      config: { console: 'session', json: true },
      schema: forSession({
        ...shared,
        id: 'checkMcpServer',
        summary: 'Test an MCP server',
        description:
          'Requires the role owner or developer. Connects like a run, with the same egress checks and credential, and lists the tools.',
        body: checked,
        answer: mcpCheck,
      }),
    },
    async (request) => {
      const { id } = await projectFor(dependencies, request, request.params.projectId, 'developer')
      const { credentialId, ...server } = check(checked, request.body)
      const asked: RunMcpServer = {
        ...server,
        ...(credentialId !== undefined && { authentication: { type: 'credential', credentialId } }),
      }
      if (server.url === undefined && dependencies.mcpServers[server.name] !== 'address') {
        const problem = dependencies.mcpServers[server.name]
          ? 'It is a program, which is started for each run that uses it.'
          : 'The operator registered no server of that name.'
        return { answers: false, tools: [], problems: [problem], durationMs: 0 }
      }
      const { tools, problems, tookMs } = await ask(dependencies, id, asked)
      const answers = tools.length > 0 || problems.length === 0
      return { answers, tools, problems, durationMs: tookMs }
    },
  )
}

async function ask(dependencies: ConsoleDependencies, projectId: string, server: RunMcpServer) {
  const signal = AbortSignal.timeout(CHECK_MS)
  try {
    return await dependencies.checkMcp(projectId, server, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    return { tools: [], problems: [`It said nothing within ${CHECK_MS / 1000} s.`], tookMs: CHECK_MS }
  }
}

async function allAgents({ agents }: ConsoleDependencies, projectId: string): Promise<readonly Agent[]> {
  const all: Agent[] = []
  let after: string | undefined
  do {
    const found = await agents.list(projectId, { labels: {}, order: 'asc', pageSize: AGENTS, after })
    all.push(...found.agents)
    after = found.next
  } while (after !== undefined)
  return all
}

/** Lists each MCP server once. Servers with the same name, URL and credential are the same server. */
function serversOf(agents: readonly Agent[], registered: ConsoleDependencies['mcpServers']) {
  const servers = new Map<string, z.infer<typeof mcpServer>>()
  const entry = ({ name, url, authentication }: McpServer) => {
    const credentialId = authentication?.type === 'credential' ? authentication.credentialId : null
    const key = JSON.stringify([name, url, credentialId])
    const kind = url !== undefined ? 'address' : (registered[name] ?? 'unknown')
    const found = servers.get(key) ?? {
      name,
      url: url ?? null,
      kind,
      registered: url === undefined,
      credentialId,
      agents: [],
    }
    servers.set(key, found)
    return found
  }
  for (const name of Object.keys(registered)) entry({ name })
  for (const { id, config } of agents) {
    for (const server of config.mcp ?? []) entry(server).agents.push({ id, displayName: config.displayName ?? null })
  }
  return [...servers.values()]
}

function modelRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  app.get(
    `${CONSOLE}/models`,
    {
      config: reads,
      schema: forSession({
        id: 'listModels',
        tag: 'Console',
        summary: 'List models',
        description:
          'Lists the configured models, with the recent health of each model’s provider on each node that calls it.',
        answer: z.object({ defaultModel: z.string(), models: z.array(model) }),
      }),
    },
    async () => {
      const { catalogue } = dependencies
      const nodes = dependencies.nodes()
      return {
        defaultModel: catalogue.defaultName,
        models: catalogue.describe().map(({ price, source, fallbacks = [], unavailable = null, ...rest }) => ({
          ...{ name: rest.name, provider: rest.provider, demo: rest.demo },
          ...{ vision: rest.vision, documents: rest.documents, searches: rest.searches ?? false },
          // Only the operator may see the address of a local model server.
          source: source.replace(/ at \S+$/, ''),
          price: price ? { input: price.input, output: price.output } : null,
          fallbacks,
          unavailable,
          health: nodes.flatMap(({ name, health }) =>
            health[rest.name] ? [{ node: name, ...showHealth(health[rest.name]!) }] : [],
          ),
        })),
      }
    },
  )
}

function showHealth({ state, failures, lastFailure, restsUntil }: ModelHealth) {
  return {
    state,
    failures,
    lastFailure: lastFailure ? { message: lastFailure.message, time: rfc3339(lastFailure.at) } : null,
    restsUntil: restsUntil === undefined ? null : rfc3339(restsUntil),
  }
}
