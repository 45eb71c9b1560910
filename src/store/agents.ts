/** Stored agents and their versions. The agent's row and its version row are written in one transaction. */
import { type Agent, type AgentConfig, sameConfig } from '../domain/agent.ts'
import { ErrandError } from '../domain/errors.ts'
import { newId } from '../domain/ids.ts'
import type { AgentPage, AgentQuery, AgentStore } from './agent-store.ts'
import { labelled } from './labels.ts'
import { type Database, fenced, type ProjectDatabases, type Statement, wasMade } from './port.ts'

export interface AgentStoreOptions {
  readonly db: ProjectDatabases
  /** The model of agents that name none. The list's `model` filter finds those agents under this name. */
  readonly defaultModel: string
  readonly now?: () => number
}

export function createAgentStore({ db: databases, defaultModel, now = Date.now }: AgentStoreOptions): AgentStore {
  return {
    async create(projectId, { id = newId('agt', now()), config }) {
      const db = databases.forProject(projectId)
      const at = now()
      const agent: Agent = { id, config, version: 1, createdAt: at, updatedAt: at }
      const result = await db.write([
        { query: db.query.insertInto('agents').values(toRow(projectId, agent)).compile() },
        ...versionStatements(db, projectId, agent),
      ])
      if (wasMade(result, 'unique')) return agent
      throw new ErrandError('conflict', `There is an agent with the id ${JSON.stringify(id)} already.`, { param: 'id' })
    },
    get: (projectId, id) => findAgent(databases.forProject(projectId), projectId, id),
    list: (projectId, query) => listAgents(databases.forProject(projectId), projectId, query, defaultModel),
    async update(projectId, id, change) {
      const db = databases.forProject(projectId)
      for (;;) {
        const current = await findAgent(db, projectId, id)
        if (!current) throw new ErrandError('not_found', `There is no agent ${JSON.stringify(id)}.`)
        const config = change(current)
        if (sameConfig(config, current.config)) return current
        const next: Agent = { ...current, config, version: current.version + 1, updatedAt: now() }
        const result = await db.write([
          updateStatement(db, projectId, current, next),
          ...versionStatements(db, projectId, next),
        ])
        // Otherwise another writer was faster: read the agent again.
        if (wasMade(result, 'fence')) return next
      }
    },
    async remove(projectId, id) {
      const db = databases.forProject(projectId)
      const result = await db.write([
        fenced(db.query.deleteFrom('agents').where('project_id', '=', projectId).where('id', '=', id).compile()),
        {
          query: db.query
            .deleteFrom('agent_versions')
            .where('project_id', '=', projectId)
            .where('agent_id', '=', id)
            .compile(),
        },
        deleteLabels(db, projectId, id),
      ])
      return wasMade(result, 'fence')
    },
    versions: (projectId, id, page) => listVersions(databases.forProject(projectId), projectId, id, page),
    version: (projectId, id, version) => agentConfigAt(databases.forProject(projectId), projectId, id, version),
  }
}

/** The agent as it is, or as it was in `version`. Undefined if there is no such agent or version. */
export async function agentConfigAt(
  db: Database,
  projectId: string,
  id: string,
  version: number | undefined,
): Promise<Agent | undefined> {
  const agent = await findAgent(db, projectId, id)
  if (!agent || version === undefined || agent.version === version) return agent
  const row = await db.query
    .selectFrom('agent_versions')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('agent_id', '=', id)
    .where('version', '=', version)
    .executeTakeFirst()
  return row && atVersion(agent, row)
}

async function findAgent(db: Database, projectId: string, id: string): Promise<Agent | undefined> {
  const row = await db.query
    .selectFrom('agents')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row && toAgent(row)
}

/** Paged by (created_at, id): ids chosen by callers contain no time, so the page key has the time too. */
async function listAgents(
  db: Database,
  projectId: string,
  query: AgentQuery,
  defaultModel: string,
): Promise<AgentPage> {
  let select = db.query.selectFrom('agents').selectAll().where('project_id', '=', projectId)
  const { model } = query
  if (model === defaultModel) select = select.where((eb) => eb.or([eb('model', '=', model), eb('model', 'is', null)]))
  else if (model !== undefined) select = select.where('model', '=', model)
  for (const [key, value] of Object.entries(query.labels)) {
    select = select.where('id', 'in', labelled(db, projectId, 'agent', key, value))
  }
  const after = query.after === undefined ? undefined : parsePosition(query.after)
  if (after) {
    const beyond = query.order === 'asc' ? '>' : '<'
    select = select.where((eb) =>
      eb.or([
        eb('created_at', beyond, after.createdAt),
        eb.and([eb('created_at', '=', after.createdAt), eb('id', beyond, after.id)]),
      ]),
    )
  }
  const rows = await select
    .orderBy('created_at', query.order)
    .orderBy('id', query.order)
    .limit(query.pageSize + 1)
    .execute()
  return page(rows.map(toAgent), query.pageSize, (agent) => `${agent.createdAt}.${agent.id}`)
}

async function listVersions(
  db: Database,
  projectId: string,
  id: string,
  { pageSize, after }: { readonly pageSize: number; readonly after?: string },
): Promise<AgentPage | undefined> {
  const agent = await findAgent(db, projectId, id)
  if (!agent) return undefined
  let select = db.query
    .selectFrom('agent_versions')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('agent_id', '=', id)
  const before = after === undefined ? undefined : wholeNumber(after)
  if (before !== undefined) select = select.where('version', '<', before)
  const rows = await select
    .orderBy('version', 'desc')
    .limit(pageSize + 1)
    .execute()
  return page(
    rows.map((row) => atVersion(agent, row)),
    pageSize,
    (version) => String(version.version),
  )
}

function page(found: Agent[], pageSize: number, position: (agent: Agent) => string): AgentPage {
  const agents = found.slice(0, pageSize)
  return { agents, next: found.length > agents.length ? position(agents.at(-1)!) : undefined }
}

function parsePosition(text: string): { createdAt: number; id: string } | undefined {
  const dot = text.indexOf('.')
  const createdAt = wholeNumber(text.slice(0, dot))
  return createdAt === undefined ? undefined : { createdAt, id: text.slice(dot + 1) }
}

/** Parses a whole number; undefined otherwise. (Postgres would reject the query, and SQLite find nothing.) */
function wholeNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

function updateStatement(db: Database, projectId: string, current: Agent, next: Agent): Statement {
  const { project_id: _project, id: _id, ...columns } = toRow(projectId, next)
  const query = db.query
    .updateTable('agents')
    .set(columns)
    .where('project_id', '=', projectId)
    .where('id', '=', current.id)
    .where('version', '=', current.version)
    .where('created_at', '=', current.createdAt)
    .compile()
  return fenced(query)
}

/** The version's row, and the labels for the list's filter. */
function versionStatements(db: Database, projectId: string, agent: Agent): Statement[] {
  const labels = Object.entries(agent.config.labels ?? {})
  const statements: Statement[] = [
    {
      query: db.query
        .insertInto('agent_versions')
        .values({
          project_id: projectId,
          agent_id: agent.id,
          version: agent.version,
          config: JSON.stringify(agent.config),
          created_at: agent.updatedAt,
        })
        .compile(),
    },
    deleteLabels(db, projectId, agent.id),
  ]
  if (labels.length > 0) {
    const rows = labels.map(([key, value]) => ({
      project_id: projectId,
      kind: 'agent' as const,
      object_id: agent.id,
      key,
      value,
    }))
    statements.push({ query: db.query.insertInto('labels').values(rows).compile() })
  }
  return statements
}

function deleteLabels(db: Database, projectId: string, id: string): Statement {
  return {
    query: db.query
      .deleteFrom('labels')
      .where('object_id', '=', id)
      .where('kind', '=', 'agent')
      .where('project_id', '=', projectId)
      .compile(),
  }
}

function toRow(projectId: string, agent: Agent) {
  return {
    project_id: projectId,
    id: agent.id,
    version: agent.version,
    config: JSON.stringify(agent.config),
    model: agent.config.model ?? null,
    created_at: agent.createdAt,
    updated_at: agent.updatedAt,
  }
}

interface AgentRow {
  readonly id: string
  readonly version: number
  readonly config: string
  readonly created_at: number
  readonly updated_at: number
}

function toAgent(row: AgentRow): Agent {
  return {
    id: row.id,
    config: JSON.parse(row.config) as AgentConfig,
    version: Number(row.version),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  }
}

function atVersion(agent: Agent, row: { version: number; config: string; created_at: number }): Agent {
  return {
    ...agent,
    config: JSON.parse(row.config) as AgentConfig,
    version: Number(row.version),
    updatedAt: Number(row.created_at),
  }
}
