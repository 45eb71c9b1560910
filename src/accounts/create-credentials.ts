/** Credentials in the database. The vault seals the secret for its project and id; other fields are plain text. */
import type { Credential, Secret, SecretType } from '../domain/credential.ts'
import { ErrandError } from '../domain/errors.ts'
import { newId } from '../domain/ids.ts'
import { type Database, fenced, type ProjectDatabases, wasMade } from '../store/port.ts'
import type { CredentialsTable } from '../store/tables.ts'
import type { CredentialChange, CredentialPage, Credentials, OpenCredential } from './credentials.ts'
import type { Owner, Vault } from './vault.ts'

/** Minimum time between two writes of `last_used_at`, which is only shown to people. */
const LAST_USED_MS = 60_000

export function createCredentials(options: {
  readonly db: ProjectDatabases
  readonly vault: Vault
  readonly now?: () => number
}): Credentials {
  const { db: databases, vault, now = Date.now } = options

  async function findRow(projectId: string, id: string): Promise<CredentialsTable | undefined> {
    return databases
      .forProject(projectId)
      .query.selectFrom('credentials')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('id', '=', id)
      .executeTakeFirst()
  }

  async function find(projectId: string, id: string): Promise<OpenCredential | undefined> {
    const row = await findRow(projectId, id)
    return row && openRow(vault, row)
  }

  /** Only shown to people: a run must not wait for it, or fail because of it. */
  function touch(projectId: string, { id, lastUsedAt = 0 }: Credential): void {
    const at = now()
    if (at - lastUsedAt < LAST_USED_MS) return
    const db = databases.forProject(projectId)
    const query = db.query
      .updateTable('credentials')
      .set({ last_used_at: at })
      .where('project_id', '=', projectId)
      .where('id', '=', id)
      .compile()
    db.write([{ query }]).catch(() => {})
  }

  /** Returns false if the version has changed. */
  async function write(projectId: string, id: string, version: number, change: CredentialChange): Promise<boolean> {
    const db = databases.forProject(projectId)
    const query = db.query
      .updateTable('credentials')
      .set({ ...columnsOf(vault, projectId, id, change), version: version + 1, updated_at: now() })
      .where('project_id', '=', projectId)
      .where('id', '=', id)
      .where('version', '=', version)
      .compile()
    return wasMade(await db.write([fenced(query)]), 'fence')
  }

  return {
    async create(projectId, { id = newId('crd', now()), ...content }) {
      const db = databases.forProject(projectId)
      const at = now()
      const row: CredentialsTable = {
        project_id: projectId,
        id,
        ...columnsOf(vault, projectId, id, content),
        // Starts at the current time, so that a later credential with the same id never repeats a version.
        version: at,
        created_at: at,
        updated_at: at,
        last_used_at: null,
      }
      const result = await db.write([{ query: db.query.insertInto('credentials').values(row).compile() }])
      if (wasMade(result, 'unique')) return toCredential(row)
      throw new ErrandError('conflict', `There is already a credential with the id ${JSON.stringify(id)}.`, {
        param: 'id',
      })
    },
    async find(projectId, id) {
      const row = await findRow(projectId, id)
      return row && toCredential(row)
    },
    list: (projectId, query) => listCredentials(databases.forProject(projectId), projectId, query),
    async update(projectId, id, change) {
      for (;;) {
        const current = await find(projectId, id)
        if (!current) throw new ErrandError('not_found', `There is no credential ${JSON.stringify(id)}.`)
        if (!(await write(projectId, id, current.version, change(current)))) continue
        const written = await findRow(projectId, id)
        if (written) return toCredential(written)
      }
    },
    async remove(projectId, id) {
      const db = databases.forProject(projectId)
      const query = db.query
        .deleteFrom('credentials')
        .where('project_id', '=', projectId)
        .where('id', '=', id)
        .compile()
      return wasMade(await db.write([fenced(query)]), 'fence')
    },
    async open(projectId, id) {
      const found = await find(projectId, id)
      if (found) touch(projectId, found.credential)
      return found
    },
    async renew(projectId, id, version, secret) {
      const row = await findRow(projectId, id)
      if (!row || Number(row.version) !== version) return undefined
      const { name, allowedHosts } = toCredential(row)
      return (await write(projectId, id, version, { name, allowedHosts, secret })) ? version + 1 : undefined
    },
  }
}

/** Pages by (created_at, id), because ids that callers choose contain no time. */
async function listCredentials(
  db: Database,
  projectId: string,
  query: Parameters<Credentials['list']>[1],
): Promise<CredentialPage> {
  let select = db.query.selectFrom('credentials').selectAll().where('project_id', '=', projectId)
  const [, time, id] = /^(\d{1,15})\.(.*)$/.exec(query.after ?? '') ?? []
  if (time !== undefined && id !== undefined) {
    const [beyond, createdAt] = [query.order === 'asc' ? '>' : '<', Number(time)] as const
    select = select.where((eb) =>
      eb.or([eb('created_at', beyond, createdAt), eb.and([eb('created_at', '=', createdAt), eb('id', beyond, id)])]),
    )
  }
  const rows = await select
    .orderBy('created_at', query.order)
    .orderBy('id', query.order)
    .limit(query.pageSize + 1)
    .execute()
  const credentials = rows.slice(0, query.pageSize).map(toCredential)
  const last = credentials.at(-1)
  return { credentials, next: last && rows.length > credentials.length ? `${last.createdAt}.${last.id}` : undefined }
}

function columnsOf(vault: Vault, projectId: string, id: string, { name, allowedHosts, secret }: CredentialChange) {
  return {
    name: name ?? null,
    type: secret.type,
    allowed_hosts: allowedHosts === undefined ? null : JSON.stringify(allowedHosts),
    sealed: vault.seal(JSON.stringify(secret), ownerOf(projectId, id)),
  }
}

function openRow(vault: Vault, row: CredentialsTable): OpenCredential {
  const secret = JSON.parse(vault.unseal(row.sealed, ownerOf(row.project_id, row.id))) as Secret
  return { credential: toCredential(row), secret, version: Number(row.version) }
}

function ownerOf(projectId: string, id: string): Owner {
  return ['credential', projectId, id]
}

function toCredential(row: CredentialsTable): Credential {
  return {
    id: row.id,
    name: row.name ?? undefined,
    type: row.type as SecretType,
    allowedHosts: row.allowed_hosts === null ? undefined : (JSON.parse(row.allowed_hosts) as string[]),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    lastUsedAt: row.last_used_at === null ? undefined : Number(row.last_used_at),
  }
}
