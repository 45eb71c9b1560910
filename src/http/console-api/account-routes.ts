/** An account: its projects, settings and audit log. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { forSession } from '../openapi/route-docs.ts'
import { check } from '../request/fields.ts'
import { readPageToken, writePageToken } from '../request/page-tokens.ts'
import { page, pageSizeOf } from '../request/queries.ts'
import { rfc3339 } from '../wire/time.ts'
import { ACCOUNT, type ConsoleDependencies, memberOf, PROJECT, projectFor } from './dependencies.ts'
import { accountParams, logEntry, name, project, projectParams, settings } from './schemas.ts'
import { showProject } from './visitors.ts'

const named = z.object({ name })

type OfAccount = { Params: z.infer<typeof accountParams> }

const reads = { console: 'session' } as const
const writes = { console: 'session', json: true } as const

export function accountRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  projectRoutes(app, dependencies)
  settingRoutes(app, dependencies)
}

const shared = { tag: 'Console', params: accountParams, errors: ['not_found'] } as const

function projectRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { projects } = dependencies.accounts

  app.get<OfAccount>(
    `${ACCOUNT}/projects`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'listProjects',
        summary: 'List projects',
        description: 'Lists the account’s projects, oldest first.',
        answer: z.object({ projects: z.array(project) }),
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'viewer')
      return { projects: (await projects.list(accountId)).map(showProject) }
    },
  )

  app.post<OfAccount>(
    `${ACCOUNT}/projects`,
    {
      config: writes,
      schema: forSession({
        ...shared,
        id: 'createProject',
        summary: 'Create a project',
        description: 'Requires the role owner or developer. The name must be unique in the account.',
        body: named,
        answer: project,
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'developer')
      return showProject(await projects.create(accountId, check(named, request.body).name, request.visitor.userId))
    },
  )

  app.patch<{ Params: z.infer<typeof projectParams> }>(
    PROJECT,
    {
      config: writes,
      schema: forSession({
        ...shared,
        id: 'renameProject',
        params: projectParams,
        summary: 'Rename a project',
        description: 'Requires the role owner or developer. The id does not change.',
        body: named,
        answer: project,
        errors: ['not_found', 'conflict'],
      }),
    },
    async (request) => {
      const found = await projectFor(dependencies, request, request.params.projectId, 'developer')
      return showProject(await projects.rename(found, check(named, request.body).name, request.visitor.userId))
    },
  )
}

const logQuery = z.object(page)

function settingRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  const { projects } = dependencies.accounts
  const show = async (accountId: string) => ({ experimental: { managedAgents: await projects.isOn(accountId) } })

  app.get<OfAccount>(
    `${ACCOUNT}/settings`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'getAccountSettings',
        summary: 'Read the account’s settings',
        description: 'Returns the experimental settings: whether the service is on for the account.',
        answer: settings,
      }),
    },
    async (request) => show((await memberOf(dependencies, request, request.params.accountId, 'viewer')).accountId),
  )

  app.patch<OfAccount>(
    `${ACCOUNT}/settings`,
    {
      config: writes,
      schema: forSession({
        ...shared,
        id: 'changeAccountSettings',
        summary: 'Switch the service on or off',
        description: 'Requires the role owner. Takes effect with the next call, on every node.',
        body: settings,
        answer: settings,
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'owner')
      const { experimental } = check(settings, request.body)
      await projects.switchService(accountId, experimental.managedAgents, request.visitor.userId)
      return show(accountId)
    },
  )

  app.get<OfAccount & { Querystring: z.infer<typeof logQuery> }>(
    `${ACCOUNT}/audit`,
    {
      config: reads,
      schema: forSession({
        ...shared,
        id: 'listAccountLog',
        summary: 'Read the account’s log',
        description: 'Requires the role owner. Lists the actions in the account with their actors, newest first.',
        query: logQuery,
        answer: z.object({ entries: z.array(logEntry), nextPageToken: z.string().optional() }),
      }),
    },
    async (request) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'owner')
      const identity = { path: `${accountId}/audit` }
      const { entries, next } = await dependencies.log.read(accountId, {
        pageSize: pageSizeOf(request.query),
        after: readPageToken(identity, request.query.pageToken),
      })
      return {
        entries: entries.map(({ id, at, actor, action, target, details }) => ({
          id,
          time: rfc3339(at),
          actor: actor ? { userId: actor.userId, email: actor.email ?? null } : null,
          action,
          target: target ?? null,
          details,
        })),
        nextPageToken: writePageToken(identity, next),
      }
    },
  )
}
