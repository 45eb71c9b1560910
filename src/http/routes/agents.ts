/** The agents API: stored, versioned configurations. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Agent, type AgentConfig, agentEtag, patchConfig } from '../../domain/agent.ts'
import { ErrandError } from '../../domain/errors.ts'
import type { Warning } from '../../domain/event.ts'
import type { Edge } from '../edge.ts'
import { keyed } from '../openapi/route-docs.ts'
import { wrongField } from '../request/fields.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { filterText, headers, idParam, labelFilters, list, page, pageSizeOf } from '../request/queries.ts'
import { checkModel, unusedSettings } from '../validate-config.ts'

const AGENTS = '/v1beta/agents'
// Only valid ids match, so other paths are 404.
const AGENT = `${AGENTS}/:id(^[A-Za-z0-9_-]+)`

const listQuery = z.looseObject({
  ...list,
  model: filterText.optional().meta({ description: 'Only agents with this model.' }),
})
const versionParams = idParam.extend({ version: z.string().meta({ description: 'A version number, from 1.' }) })

type ById = { Params: z.infer<typeof idParam> }

export function agentRoutes(app: FastifyInstance, edge: Edge): void {
  const { agents } = edge
  const { schemas } = edge.documented

  app.post(
    AGENTS,
    {
      config: { json: true },
      schema: keyed({
        id: 'createAgent',
        tag: 'Agents',
        summary: 'Create an agent',
        description:
          'Stores a configuration that interactions can run by its id. All fields are optional; without `model`, the agent gets the server’s default model. Returns 200 with the agent, and its path in `Location`.',
        headers: z.object(headers.revision),
        body: schemas.newAgent,
        answer: schemas.agent,
        errors: ['conflict'],
      }),
    },
    async (request, reply) => {
      const { id, config, warnings } = request.codec.agents.decodeNew(request.body)
      checkModel(edge.catalogue, config.model)
      const agent = await agents.create(request.caller.projectId, { id, config: withModel(config, edge) })
      reply.header('Location', `${AGENTS}/${agent.id}`)
      return sendAgent(request, reply, agent, [
        ...request.ignored,
        ...warnings,
        ...(await unused(agent, request, edge)),
      ])
    },
  )

  app.get<{ Querystring: z.infer<typeof listQuery> }>(
    AGENTS,
    {
      schema: keyed({
        id: 'listAgents',
        tag: 'Agents',
        summary: 'List agents',
        description: 'Returns the project’s agents in pages, by creation time.',
        headers: z.object(headers.revision),
        query: listQuery,
        answer: schemas.agentList,
      }),
    },
    async (request) => {
      const { model, order = 'desc', pageToken } = request.query
      const filters = { labels: labelFilters(request.query), model, order }
      const identity = { path: AGENTS, ...filters }
      const { agents: found, next } = await agents.list(request.caller.projectId, {
        ...filters,
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, pageToken),
      })
      return request.codec.agents.encodeList(found, writePageToken(identity, next))
    },
  )

  app.get<ById>(
    AGENT,
    {
      schema: keyed({
        id: 'getAgent',
        tag: 'Agents',
        summary: 'Read an agent',
        description: 'Returns the newest version. The `ETag` header has the same value as `etag`.',
        headers: z.object(headers.revision),
        params: idParam,
        answer: schemas.agent,
        errors: ['not_found'],
      }),
    },
    async (request, reply) => {
      const agent = await agents.get(request.caller.projectId, request.params.id)
      if (!agent) throw noAgent(request.params.id)
      return sendAgent(request, reply, agent)
    },
  )

  app.patch<ById>(
    AGENT,
    {
      config: { json: true },
      schema: keyed({
        id: 'updateAgent',
        tag: 'Agents',
        summary: 'Update an agent',
        description:
          'Applies a merge patch (RFC 7396), sent as `application/json` or `application/merge-patch+json`. Absent fields stay as they are, `null` clears a field, lists are replaced as a whole, `policy` and `labels` are merged key by key. `version` rises only if something changes.',
        headers: z.object({ ...headers.revision, ...headers.ifMatch }),
        params: idParam,
        body: schemas.agentPatch,
        bodyTypes: ['application/json', 'application/merge-patch+json'],
        answer: schemas.agent,
        errors: ['not_found', 'precondition_failed'],
      }),
    },
    async (request, reply) => {
      const { patch, warnings } = request.codec.agents.decodePatch(request.body)
      checkModel(edge.catalogue, patch.model ?? undefined)
      const agent = await agents.update(request.caller.projectId, request.params.id, (current) => {
        checkIfMatch(request.headers['if-match'], current)
        return withModel(checkLabelCount(patchConfig(current.config, patch), edge), edge)
      })
      return sendAgent(request, reply, agent, [
        ...request.ignored,
        ...warnings,
        ...(await unused(agent, request, edge)),
      ])
    },
  )

  app.delete<ById>(
    AGENT,
    {
      schema: keyed({
        id: 'deleteAgent',
        tag: 'Agents',
        summary: 'Delete an agent',
        description:
          'Deletes the agent with all its versions. Running interactions keep the configuration that they started with.',
        headers: z.object(headers.revision),
        params: idParam,
        answer: z.object({}),
        errors: ['not_found'],
      }),
    },
    async (request) => {
      if (!(await agents.remove(request.caller.projectId, request.params.id))) throw noAgent(request.params.id)
      return {}
    },
  )

  versionRoutes(app, edge)
}

function versionRoutes(app: FastifyInstance, { agents, documented }: Edge): void {
  const pageQuery = z.object(page)
  app.get<ById & { Querystring: z.infer<typeof pageQuery> }>(
    `${AGENT}/versions`,
    {
      schema: keyed({
        id: 'listAgentVersions',
        tag: 'Agents',
        summary: 'List an agent’s versions',
        description: 'Returns the versions, newest first.',
        headers: z.object(headers.revision),
        params: idParam,
        query: pageQuery,
        answer: documented.schemas.agentVersions,
        errors: ['not_found'],
      }),
    },
    async (request) => {
      const { id } = request.params
      const identity = { path: `${AGENTS}/${id}/versions` }
      const found = await agents.versions(request.caller.projectId, id, {
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, request.query.pageToken),
      })
      if (!found) throw noAgent(id)
      return request.codec.agents.encodeVersions(found.agents, writePageToken(identity, found.next))
    },
  )

  app.get<{ Params: z.infer<typeof versionParams> }>(
    `${AGENT}/versions/:version`,
    {
      schema: keyed({
        id: 'getAgentVersion',
        tag: 'Agents',
        summary: 'Read one version of an agent',
        description: 'Returns the agent as it was in that version.',
        headers: z.object(headers.revision),
        params: versionParams,
        answer: documented.schemas.agent,
        errors: ['not_found'],
      }),
    },
    async (request, reply) => {
      const { id, version } = request.params
      const agent = /^[1-9]\d{0,8}$/.test(version)
        ? await agents.version(request.caller.projectId, id, Number(version))
        : undefined
      if (!agent) throw new ErrandError('not_found', `There is no version ${version.slice(0, 40)} of an agent ${id}.`)
      return sendAgent(request, reply, agent)
    },
  )
}

function sendAgent(request: FastifyRequest, reply: FastifyReply, agent: Agent, warnings: readonly Warning[] = []) {
  reply.header('ETag', agentEtag(agent))
  return request.codec.agents.encode(agent, warnings)
}

function unused({ config }: Agent, { caller }: FastifyRequest, edge: Edge): Promise<readonly Warning[]> {
  return unusedSettings(config, caller.projectId, edge)
}

/** Stores the default model with the agent, so that a new default does not change existing agents. */
function withModel(config: AgentConfig, { catalogue }: Edge): AgentConfig {
  return { ...config, model: config.model ?? catalogue.defaultName }
}

/** Checks the number of labels after the merge, because a patch adds to the existing ones. */
function checkLabelCount(config: AgentConfig, { limits }: Edge): AgentConfig {
  const count = Object.keys(config.labels ?? {}).length
  if (count > limits.labels)
    throw wrongField('labels', `may have at most ${limits.labels} entries; it would have ${count}`)
  return config
}

/** Checks `If-Match` (RFC 9110, 13.1.1): one of the listed tags must match, or `*`. A weak tag never matches. */
function checkIfMatch(header: string | undefined, agent: Agent): void {
  if (header === undefined || header.trim() === '*') return
  const tags = header.split(',').map((tag) => tag.trim())
  if (tags.includes(agentEtag(agent))) return
  throw new ErrandError(
    'precondition_failed',
    `The agent has changed: its etag is now ${agentEtag(agent)}. Read it again and repeat the change.`,
    { param: 'If-Match' },
  )
}

function noAgent(id: string): ErrandError {
  return new ErrandError('not_found', `There is no agent ${JSON.stringify(id)}.`)
}
