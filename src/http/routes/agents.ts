/** The agent configuration API: stored configurations with versions (spec.md 2.1, contract.md "Agents"). */
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
import { checkModel, passedOver } from '../validate-config.ts'

const AGENTS = '/v1beta/agents'
// Ids as they are made and as callers may choose them: what is no id is no address.
const AGENT = `${AGENTS}/:id(^[A-Za-z0-9_-]+)`

const listQuery = z.looseObject({
  ...list,
  model: filterText.optional().meta({ description: 'Only agents with this model.' }),
})
const versionParams = idParam.extend({ version: z.string().meta({ description: 'A whole number from 1.' }) })

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
          'Stores a configuration under an id, so that an interaction can name it. Nothing is required: `model` falls to the server’s default. The answer is 200 with the agent and its `Location`.',
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
        description: 'The project’s agents, a page at a time, by creation time.',
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
        description: 'The newest version. Its `etag` also comes as the `ETag` header.',
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
        summary: 'Change an agent',
        description:
          'A merge patch (RFC 7396), also as `application/merge-patch+json`: what is absent stays, `null` clears, lists are replaced whole, `policy` and `labels` merge key by key. `version` rises only when something really changes.',
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
          'With all its versions; 404 from then on. Running interactions keep the configuration they started with.',
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
        description: 'Newest first.',
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
        description: 'The agent as it was in that version.',
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
  return passedOver(config, caller.projectId, edge)
}

/** The model is written down when it is not said, so that a new default does not change agents there are. */
function withModel(config: AgentConfig, { catalogue }: Edge): AgentConfig {
  return { ...config, model: config.model ?? catalogue.defaultName }
}

/** A patch may add labels to those there are. */
function checkLabelCount(config: AgentConfig, { limits }: Edge): AgentConfig {
  const count = Object.keys(config.labels ?? {}).length
  if (count > limits.labels)
    throw wrongField('labels', `may have at most ${limits.labels} entries; it would have ${count}`)
  return config
}

/** RFC 9110, 13.1.1: any of the listed tags, or `*`. A weak tag never matches. */
function checkIfMatch(header: string | undefined, agent: Agent): void {
  if (header === undefined || header.trim() === '*') return
  const tags = header.split(',').map((tag) => tag.trim())
  if (tags.includes(agentEtag(agent))) return
  throw new ErrandError(
    'precondition_failed',
    `The agent has changed since: its etag is ${agentEtag(agent)} now. Read it, and base the change on that.`,
    { param: 'If-Match' },
  )
}

function noAgent(id: string): ErrandError {
  return new ErrandError('not_found', `There is no agent ${JSON.stringify(id)}.`)
}
