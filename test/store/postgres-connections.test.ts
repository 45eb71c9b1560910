/** Connections to Postgres: TLS, an address that leads to a standby, and too few connections. */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database, Statement } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { type Cluster, findPostgres, startCluster } from '../support/cluster.ts'
import { closingAfterEach, onPostgres, quiet } from './backends.ts'

const NOBODY = 65_534

onPostgres('connections to Postgres', (cluster) => {
  const opened = closingAfterEach<Database>()
  const open = async (url: string, poolSize = 4) => opened(await openPostgres(url, { poolSize, log: quiet }))

  describe('TLS', () => {
    let secure: Cluster
    let url: string
    let authority: string
    beforeAll(async () => {
      const port = await freePort()
      secure = await startCluster(findPostgres()!, {
        tcp: port,
        settings: (dir) => {
          authority = selfSigned(dir, '127.0.0.1')
          selfSigned(dir, 'another.example')
          return ['ssl=on', `ssl_cert_file=${authority}`, `ssl_key_file=${dir}/127.0.0.1.key`]
        },
      })
      const { pathname } = new URL(await secure.createDatabase())
      url = `postgres://errand@127.0.0.1:${port}${pathname}`
    })
    afterAll(() => secure?.stop())

    it('connects to a server with a certificate of the configured authority', async () => {
      const db = await open(`${url}?sslmode=verify-full&sslrootcert=${authority}`)
      const { rows } = await sql<{ ssl: boolean }>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`.execute(
        db.query,
      )
      expect(rows).toEqual([{ ssl: true }])
    })

    it('refuses a certificate of an unknown authority', async () => {
      await expect(open(`${url}?sslmode=verify-full`)).rejects.toThrow(/can't be used: .*self-signed certificate/)
      const stranger = authority.replace('127.0.0.1.crt', 'another.example.crt')
      await expect(open(`${url}?sslmode=verify-full&sslrootcert=${stranger}`)).rejects.toThrow(/can't be used/)
    })

    it('refuses a certificate for another host', async () => {
      const elsewhere = url.replace('127.0.0.1', 'localhost')
      await expect(open(`${elsewhere}?sslmode=verify-full&sslrootcert=${authority}`)).rejects.toThrow(/altnames/)
    })

    it('refuses a server without TLS', async () => {
      const plain = await cluster().createDatabase()
      await expect(open(`${plain}&sslmode=verify-full`)).rejects.toThrow(/does not support SSL/)
    })
  })

  describe('a read-only database', () => {
    it('is not used after the first refused write until it accepts writes again', async () => {
      const url = await cluster().createDatabase()
      const db = await open(url)
      await Promise.all([1, 2, 3].map((i) => db.write([account(`a${i}`)])))
      await readOnly(url, 'on')
      await expect(db.write([account('lost')])).rejects.toThrow(/read-only transaction/)
      // Reads fail too, because a standby's data is stale.
      const read = () => db.query.selectFrom('accounts').select('id').orderBy('id').execute()
      await expect(read()).rejects.toThrow(/can't be reached: it is read-only.*needs the primary/)
      await expect(open(url)).rejects.toThrow(/it is read-only/)
      await readOnly(url, 'off')
      expect(await db.write([account('kept')])).toMatchObject({ ok: true })
      expect((await read()).map(({ id }) => id)).toEqual(['a1', 'a2', 'a3', 'kept'])
    })
  })

  it('reports the size of the pool if no connection becomes free', async () => {
    const db = await open(await cluster().createDatabase(), 1)
    const busy = db.write([{ query: { sql: 'select pg_sleep(11)', parameters: [] } }])
    await expect(db.write([account('late')])).rejects.toThrow('Every connection to the database (1) was busy for 10 s.')
    expect(await busy).toMatchObject({ ok: true })
  })

  it('names the application of a connection, unless the URL does', async () => {
    const url = await cluster().createDatabase()
    const nameOf = async (db: Database) =>
      (await sql<{ name: string }>`select current_setting('application_name') as name`.execute(db.query)).rows[0]!.name
    expect(await nameOf(await open(url))).toBe('errand')
    expect(await nameOf(await open(`${url}&application_name=errand-eu`))).toBe('errand-eu')
  })
})

function account(id: string): Statement {
  return {
    query: { sql: `insert into accounts (id, name, created_at) values ('${id}', '${id}', 1)`, parameters: [] },
    rows: 1,
  }
}

/** Simulates a failover: connections stay open, but writes on them are refused. */
async function readOnly(url: string, value: 'on' | 'off'): Promise<void> {
  const admin = new pg.Client(url.replace('user=errand', 'user=admin'))
  await admin.connect()
  await admin.query(`alter system set default_transaction_read_only = ${value}`)
  await admin.query('select pg_reload_conf()')
  await admin.query('select pg_sleep(0.3)')
  await admin.end()
}

/** Path of the certificate. The key is in the same directory. */
function selfSigned(dir: string, name: string): string {
  const [key, certificate] = [join(dir, `${name}.key`), join(dir, `${name}.crt`)]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${/^[\d.]+$/.test(name) ? 'IP' : 'DNS'}:${name}`]
  const flags = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30']
  execFileSync('openssl', ['req', ...flags, ...subject, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  chmodSync(key, 0o600)
  if (process.getuid!() === 0) chownSync(key, NOBODY, NOBODY)
  return certificate
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
