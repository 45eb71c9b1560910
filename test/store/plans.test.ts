/**
 * No frequent query on Postgres scans or sorts a large table. The test records the queries that operations send, and explains
 * them again in the same scope, on tables with enough rows that the planner prefers an index.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createCredentials } from '../../src/accounts/create-credentials.ts'
import { openAccounts } from '../../src/accounts/open-accounts.ts'
import { createVault } from '../../src/accounts/vault.ts'
import { findName } from '../../src/skills/name-rows.ts'
import { findVersion, listSkills } from '../../src/skills/version-rows.ts'
import { createAgentStore } from '../../src/store/agents.ts'
import { readDecisions } from '../../src/store/approvals.ts'
import { listAudit } from '../../src/store/audit.ts'
import { readSpent } from '../../src/store/budgets.ts'
import { findClaim } from '../../src/store/claim-row.ts'
import { claimOldest } from '../../src/store/claims.ts'
import { endFromOutside, readEvents, readProgress } from '../../src/store/events.ts'
import { readFrame } from '../../src/store/frames.ts'
import { deleteIdempotencyKeys, findByIdempotencyKey } from '../../src/store/idempotency.ts'
import { insertInteraction } from '../../src/store/insert-interaction.ts'
import { deleteInteraction, findExpired, findInteraction, knownInteractions } from '../../src/store/interactions.ts'
import { expireLeases, readOwnersInSameDirectory, renewLeases } from '../../src/store/leases.ts'
import { listInteractions } from '../../src/store/list-interactions.ts'
import type { Database } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { findStarved, readQueue, requeue } from '../../src/store/queue.ts'
import { countCalls } from '../../src/store/rate-windows.ts'
import { deleteRemovals } from '../../src/store/removals.ts'
import { readResultMedia } from '../../src/store/result-media.ts'
import { readTurns } from '../../src/store/turns.ts'
import { readUsage, sumEndedUsage } from '../../src/store/usage.ts'
import { claimDueWebhook, readWebhookLog } from '../../src/store/webhooks.ts'
import { onPostgres, quiet } from './backends.ts'
import { append, claimant, ending, newInteraction, PROJECT, removal, said } from './rows.ts'

const SECRET = 'the secret of a test of plans alone'
/** Tables that grow with use. The others (accounts, settings, migrations …) have few rows. */
const ROWS = 20_000

/** `$` is a number from 1 to ROWS. One row in 500 is running. Twenty projects have equally many rows; PROJECT is one of them. */
const PROJECT_OF = `case when $ % 20 = 0 then '${PROJECT}' else 'prj_' || $ % 20 end`
const ID = `'int_' || lpad($::text, 9, '0')`
const SEEDS = {
  interactions: `${ID}, ${PROJECT_OF}, 'key', null, 'fake', case when $ % 500 = 0 then 'running' else 'completed' end, 'settling', $, null, $, 1, 1, null, 0, 5`,
  specs: `${ID}, '{}', '{}'`,
  turns: `${ID}, 1, '{}', 'stop', '{}', 3`,
  audit: `${ID}, $, 'file', 'h', 443, 'dialled', 'id', 1`,
  approvals: `${ID}, 1, 1, null, 'key', 1`,
  result_media: `${ID}, 1, '[]'`,
  frames: `${ID}, 1, '{}'`,
  webhooks: `${ID}, ${PROJECT_OF}, 'u', 'r', case when $ % 500 = 1 then 'pending' else 'delivered' end, 1, 1`,
  webhook_deliveries: `${ID}, 1, 1, 1, 200, null`,
  idempotency: `${PROJECT_OF}, 'key' || $, 'f', ${ID}, $`,
  labels: `${PROJECT_OF}, 'interaction', case when $ % 3 = 0 then 'team' else 'other' end, 'a', ${ID}`,
  keys: `'key_' || $, ${PROJECT_OF}, 'n', 'p', 'hash' || $, 1, null, null, null`,
  projects: `'prj_' || $, 'acc' || $, 'n', 1`,
  agents: `${PROJECT_OF}, 'agt_' || $, 1, '{}', 'fake', $, $`,
  agent_versions: `${PROJECT_OF}, 'agt_' || $, 1, '{}', $`,
  credentials: `${PROJECT_OF}, 'crd_' || $, null, 'bearer', null, 's', 1, $, $, null`,
  skills: `${PROJECT_OF}, 'skill' || $, 1, 1, $`,
  skill_versions: `${PROJECT_OF}, 'skill' || $, 1, 'digest' || $, $`,
  skill_contents: `'digest' || $, 'skl' || $, '{}', '[]', 1, 1, null`,
  removals: `${ID}, ${PROJECT_OF}, $, 'retention', 1, 5, 0, 0`,
  rate_windows: `'prj_' || $, 'calls', 1, 1, 1`,
  usage: `${PROJECT_OF}, 'day' || $ % 300, 'agt' || $, 'fake', 'key', $ % 40, 1, 0, 0, 1, 1, 1`,
} as const
const COLUMNS: Partial<Record<string, string>> = {
  interactions:
    'id, project_id, key_id, agent_id, model, status, stage, created_at, started_at, ended_at, epoch, attempts, lease_owner, lease_until, last_seq',
  turns: 'interaction_id, turn, message, finish, tokens, at_seq',
  audit: 'interaction_id, at, kind, host, port, outcome, id, count',
  labels: 'project_id, kind, key, value, object_id',
}
/** An ended interaction of PROJECT. */
const OVER = 'int_000010020'

interface Sent {
  /** Statement that sets the scope. */
  readonly begin: string
  readonly text: string
  readonly values: unknown[]
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Plan Rows': number
  readonly Plans?: readonly Plan[]
}

onPostgres('plans', (cluster) => {
  let db: Database
  let mine: Database
  /** Connection for the test's own statements. */
  let planner: pg.Client
  beforeAll(async () => {
    const url = await cluster().createDatabase()
    db = await openPostgres(url, { log: quiet })
    mine = db.forProject(PROJECT)
    const statements = Object.entries(SEEDS).map(
      ([table, values]) =>
        `insert into ${table} ${COLUMNS[table] ? `(${COLUMNS[table]})` : ''} select ${values.replaceAll('$', 'n')} from generate_series(1, ${ROWS}) n`,
    )
    statements.push(
      `insert into events select ${ID.replaceAll('$', 'n')}, seq, 'partial_output', '{}', 1 from generate_series(1, ${ROWS}) n, generate_series(1, 5) seq`,
    )
    // A label that only PROJECT has, on all of its interactions.
    statements.push(
      `insert into labels (${COLUMNS.labels}) select '${PROJECT}', 'interaction', 'stage', 'live', ${ID.replaceAll('$', 'n')} from generate_series(20, ${ROWS}, 20) n`,
    )
    for (const text of statements) {
      expect(await db.write([{ query: { sql: text, parameters: [] } }]), text).toMatchObject({ ok: true })
    }
    planner = new pg.Client(url)
    await planner.connect()
    await planner.query('analyze')
  })
  afterAll(async () => {
    await planner?.end()
    await db?.close()
  })

  /** Runs an operation and returns the queries that it sent, each with its scope, for `explain`. */
  async function sentBy(operation: () => Promise<unknown>): Promise<readonly Sent[]> {
    const spy = vi.spyOn(pg.Client.prototype, 'query')
    try {
      await operation()
      const sent: Sent[] = []
      let begin = ''
      for (const [text, values] of spy.mock.calls as unknown as [string, unknown[] | undefined][]) {
        if (text.startsWith('begin')) begin = text
        else if (/^\s*(select|insert|update|delete)/.test(text)) sent.push({ begin, text, values: values ?? [] })
      }
      return sent
    } finally {
      spy.mockRestore()
    }
  }

  /** Faults of a plan: scans of whole tables, and sorts of more than a page. */
  function faults(plan: Plan): string[] {
    const own: string[] = []
    if (plan['Node Type'] === 'Seq Scan' && (plan['Relation Name'] ?? '') in { ...SEEDS, events: true }) {
      own.push(`reads all of ${plan['Relation Name']}`)
    }
    if (plan['Node Type'].endsWith('Sort') && plan['Plan Rows'] > 500) own.push(`sorts ${plan['Plan Rows']} rows`)
    return [...own, ...(plan.Plans ?? []).flatMap(faults)]
  }

  async function checkPlans(operation: () => Promise<unknown>): Promise<void> {
    const sent = await sentBy(operation)
    expect(sent.length).toBeGreaterThan(0)
    for (const { begin, text, values } of sent) {
      await planner.query(begin)
      const { rows } = await planner.query(`explain (format json) ${text}`, values)
      await planner.query('rollback')
      const { Plan: plan } = rows[0]['QUERY PLAN'][0]
      expect(faults(plan), `${text}\n${JSON.stringify(plan, null, 1)}`).toEqual([])
    }
  }

  const USED = { projectIds: [PROJECT], from: 'day100', to: 'day129', groups: ['day'] } as const
  const TEAM = { team: 'a' }
  const NEWEST = { labels: {}, order: 'desc' } as const
  const agents = () => createAgentStore({ db, defaultModel: 'fake' })
  const credentials = () => createCredentials({ db, vault: createVault(SECRET) })
  const page = { pageSize: 20, order: 'desc' } as const

  it.each<[string, () => Promise<unknown>]>([
    ['looking a key up', async () => openAccounts({ db, secret: SECRET }).authenticate((await keyOf(db)).key)],
    [
      'counting a call',
      () => countCalls(db, { projectId: PROJECT, class: 'calls' }, 1, { limit: 10, windowMs: 1_000 }),
    ],
    ['accepting', () => insertInteraction(mine, whole(), claimant)],
    ['finding by an idempotency key', () => findByIdempotencyKey(mine, PROJECT, { key: 'key40', fingerprint: 'f' }, 0)],
    ['finding how it is claimed', () => findClaim(mine, OVER)],
    ['reading an interaction', () => findInteraction(mine, OVER, PROJECT)],
    ['reading events', () => readEvents(mine, OVER, 2, 500)],
    ['reading progress', () => readProgress(mine, OVER)],
    ['reading turns', () => readTurns(mine, OVER)],
    ['reading media', () => readResultMedia(mine, OVER)],
    ['reading the frame', () => readFrame(mine, OVER)],
    ['reading decisions', () => readDecisions(mine, OVER)],
    ['reading the audit', () => listAudit(mine, OVER, { pageSize: 20 })],
    ['reading deliveries', () => readWebhookLog(mine, OVER)],
    ['listing interactions', () => listInteractions(mine, PROJECT, NEWEST, 21)],
    ['listing behind one', () => listInteractions(mine, PROJECT, { ...NEWEST, after: OVER }, 21)],
    ['listing by status', () => listInteractions(mine, PROJECT, { ...NEWEST, status: 'failed' }, 21)],
    ['listing by agent', () => listInteractions(mine, PROJECT, { ...NEWEST, agentId: 'agt_1' }, 21)],
    ['listing by label', () => listInteractions(mine, PROJECT, { ...NEWEST, labels: { team: 'a' } }, 21)],
    [
      'listing by two labels',
      () => listInteractions(mine, PROJECT, { ...NEWEST, labels: { ...TEAM, stage: 'live' } }, 21),
    ],
    ['listing by model', () => listInteractions(mine, PROJECT, { ...NEWEST, model: 'fake' }, 21)],
    ['listing by label, deep', () => listInteractions(mine, PROJECT, { ...NEWEST, labels: TEAM, after: OVER }, 21)],
    [
      'listing by label and model',
      () => listInteractions(mine, PROJECT, { ...NEWEST, labels: TEAM, model: 'fake' }, 21),
    ],
    ['listing by key', () => listInteractions(mine, PROJECT, { ...NEWEST, keyId: 'key' }, 21)],
    ['reading what was used', () => readUsage(db, USED, 1_000)],
    ['reading what a project spent', () => readSpent(mine, PROJECT, '2026-11')],
    ['summing the usage of ended runs', () => sumEndedUsage(db, 20)],
    ['listing agents', () => agents().list(PROJECT, { ...page, labels: {} })],
    ['reading an agent', () => agents().get(PROJECT, 'agt_40')],
    ['listing an agent’s versions', () => agents().versions(PROJECT, 'agt_40', { pageSize: 20 })],
    ['listing credentials', () => credentials().list(PROJECT, page)],
    ['reading a credential', () => credentials().find(PROJECT, 'crd_none')],
    ['finding a skill', () => findName(mine, PROJECT, 'skill40')],
    ['finding a skill’s version', () => findVersion(mine, PROJECT, 'skill40')],
    ['listing skills', () => listSkills(mine, PROJECT, page)],
    ['claiming', () => claimOldest(db, claimant)],
    ['prolonging leases', () => renewLeases(db, claimant.owner, 60_000, [OVER])],
    ['finding who else holds leases', () => readOwnersInSameDirectory(db, claimant.owner)],
    ['ending the leases of the dead', () => expireLeases(db, 'home.dead')],
    ['releasing', () => requeue(db, { id: OVER, epoch: 1 }, 'home.process', { planned: true })],
    ['appending', () => append(db, { id: OVER, epoch: 1, lastSeq: 5 }, said('x'))],
    ['cancelling', () => mine.write(endFromOutside(mine, OVER, ending(OVER)))],
    ['finding those that wait too long', () => findStarved(db, 1_000)],
    ['measuring the queue', () => readQueue(db)],
    ['claiming a delivery', () => claimDueWebhook(db, 1_000, [])],
    ['finding what is past its time', () => findExpired(db, 1_000, 100)],
    ['telling known from unknown', () => knownInteractions(db, [OVER, 'int_none'])],
    ['forgetting idempotency keys', () => deleteIdempotencyKeys(db, 10)],
    ['removing', () => deleteInteraction(mine, removal('int_none'))],
    ['forgetting what was removed', () => deleteRemovals(db, 10)],
  ])('uses an index for %s', (_name, operation) => checkPlans(operation))

  it('estimates how many interactions have a label: by single columns the estimate would be a few of a thousand', async () => {
    const { rows } = await planner.query(
      `explain (format json) select from labels where project_id = '${PROJECT}' and kind = 'interaction' and key = 'stage' and value = 'live'`,
    )
    expect(rows[0]['QUERY PLAN'][0].Plan['Plan Rows']).toBeGreaterThan(100)
  })
})

async function keyOf(db: Database) {
  return openAccounts({ db, secret: SECRET }).createKey({ name: 'n', project: 'p' })
}

function whole() {
  return newInteraction({
    labels: { team: 'a' },
    idempotency: { key: 'new', fingerprint: 'f', notBefore: 0 },
    webhook: { sealedUrl: 'u', revision: 'r' },
  })
}
