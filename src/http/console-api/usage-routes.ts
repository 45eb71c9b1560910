/** Usage of an account's projects: sums by day, project, agent, model and key, as JSON or CSV. */
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { dayOf, USAGE_GROUPS, type UsageGroup } from '../../store/usage.ts'
import type { UsageRow } from '../../store/usage-report.ts'
import { noProject } from '../gate/session.ts'
import { forSession } from '../openapi/route-docs.ts'
import { wrongField } from '../request/fields.ts'
import { filterText } from '../request/queries.ts'
import { type Cell, toCsv } from '../response/csv.ts'
import { ACCOUNT, type ConsoleDependencies, memberOf } from './dependencies.ts'
import { accountParams, usageReport } from './schemas.ts'

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
const MOST_DAYS = 366

const day = z.iso.date({ error: 'must be a day, as 2026-11-21' }).optional()
const query = z.object({
  from: day.meta({ description: `First day, UTC. Default: ${DEFAULT_DAYS} days until \`to\`.` }),
  to: day.meta({ description: `Last day, UTC, at most ${MOST_DAYS} days including the first. Default: today.` }),
  group: z
    .string()
    .optional()
    .meta({
      description: `Dimensions of the rows, comma-separated: ${USAGE_GROUPS.map((name) => `\`${name}\``).join(', ')}. Default \`day\`.`,
    }),
  projectId: filterText.optional(),
  agentId: filterText.optional(),
  model: filterText.optional(),
  keyId: filterText.optional(),
  format: z.enum(['json', 'csv']).optional().meta({ description: 'Default `json`.' }),
})
type Query = z.infer<typeof query>

export function usageRoutes(app: FastifyInstance, dependencies: ConsoleDependencies): void {
  app.get<{ Params: z.infer<typeof accountParams>; Querystring: Query }>(
    `${ACCOUNT}/usage`,
    {
      config: { console: 'session' },
      schema: forSession({
        tag: 'Console',
        params: accountParams,
        errors: ['not_found'],
        id: 'readUsage',
        summary: 'Read usage',
        description:
          'Returns the ended runs by the day of their end, with tokens and cost. Deleted runs stay counted. Percentiles are accurate to 10 %.',
        query,
        answer: usageReport,
        other: ['text/csv', z.string()],
      }),
    },
    async (request, reply) => {
      const { accountId } = await memberOf(dependencies, request, request.params.accountId, 'viewer')
      const { projectId, agentId, model, keyId, format } = request.query
      const days = daysOf(request.query)
      const groups = groupsOf(request.query)
      const own = (await dependencies.accounts.projects.list(accountId)).map(({ id }) => id)
      if (projectId !== undefined && !own.includes(projectId)) throw noProject(projectId)
      const projectIds = projectId === undefined ? own : [projectId]
      const report = await dependencies.usage({ projectIds, ...days, groups, agentId, model, keyId })
      if (format !== 'csv') return { ...days, ...report }
      return reply
        .header('content-type', 'text/csv; charset=utf-8')
        .header('content-disposition', `attachment; filename="usage-${days.from}-${days.to}.csv"`)
        .send(toTable(groups, report.rows))
    },
  )
}

function daysOf({ from, to = dayOf(Date.now()) }: Query): { readonly from: string; readonly to: string } {
  const last = Date.parse(to)
  const first = from ?? dayOf(last - (DEFAULT_DAYS - 1) * DAY_MS)
  const days = (last - Date.parse(first)) / DAY_MS + 1
  if (days < 1) throw wrongField('to', 'must not be before `from`')
  if (days > MOST_DAYS) throw wrongField('from', `must be at most ${MOST_DAYS} days before \`to\``)
  return { from: first, to }
}

function groupsOf({ group = 'day' }: Query): readonly UsageGroup[] {
  const asked = group.split(',')
  const known = USAGE_GROUPS.filter((name) => asked.includes(name))
  if (known.length !== asked.length) {
    throw wrongField('group', `must be some of ${USAGE_GROUPS.join(', ')}, each once, by comma`)
  }
  return known
}

const COLUMNS: Readonly<Record<UsageGroup, readonly (readonly [name: string, cell: (row: UsageRow) => Cell])[]>> = {
  day: [['day', (row) => row.day]],
  project: [
    ['project_id', (row) => row.projectId],
    ['project', (row) => row.projectName],
  ],
  agent: [['agent_id', (row) => row.agentId]],
  model: [['model', (row) => row.model]],
  key: [
    ['key_id', (row) => row.keyId],
    ['key', (row) => row.keyName],
  ],
}
const FIGURES: readonly (readonly [name: string, cell: (row: UsageRow) => Cell])[] = [
  ['runs', (row) => row.runs],
  ['failed', (row) => row.failed],
  ['cancelled', (row) => row.cancelled],
  ['input_tokens', (row) => row.inputTokens],
  ['output_tokens', (row) => row.outputTokens],
  ['cost_usd', (row) => row.cost.amount],
  ['latency_p50_ms', (row) => row.latencyMs.p50],
  ['latency_p95_ms', (row) => row.latencyMs.p95],
  ['latency_p99_ms', (row) => row.latencyMs.p99],
]

function toTable(groups: readonly UsageGroup[], rows: readonly UsageRow[]): string {
  const columns = [...groups.flatMap((group) => COLUMNS[group]), ...FIGURES]
  return toCsv([columns.map(([name]) => name), ...rows.map((row) => columns.map(([, cell]) => cell(row)))])
}
