/**
 * deploy/compose.yaml as it stands, with only the names of the images others: up, a run with files, a graceful stop, an
 * upgrade from an older schema, and back-up and restore by the very commands of docs/install.md.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { MIGRATIONS } from '../../../src/store/migrations/migrations.ts'
import { ROOT } from '../../package/install.ts'
import { composeProgram, dockerAt, errandImage, postgresImage, s3Image } from './images.ts'

const run = promisify(execFile)
const docker = dockerAt(inject('docker')!.dockerHost)
const PAGE = readFileSync(join(ROOT, 'docs/install.md'), 'utf8').split('## With compose')[1]!
const WEATHER = readFileSync(join(ROOT, 'examples/seattle-weather.csv'), 'utf8')

let place: string
let url: string
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'errand-compose-'))
  cpSync(join(ROOT, 'deploy'), join(place, 'deploy'), { recursive: true })
  const made = [errandImage(docker), postgresImage(docker), s3Image(docker), composeProgram()] as const
  const [errand, postgres, s3, program] = await Promise.all(made)
  // `docker compose` as a person has it.
  writeFileSync(join(place, 'docker'), `#!/bin/sh\nshift\nexec '${program}' "$@"\n`, { mode: 0o755 })
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  env = { ...docker.env, PATH: `${place}:${docker.env.PATH}` }
  Object.assign(env, { ERRAND_IMAGE: errand, POSTGRES_IMAGE: postgres, S3_IMAGE: s3, ERRAND_PUBLISH: String(port) })
}, 900_000)
afterAll(async () => {
  if (env) await sh('[ ! -e .env ] || docker compose down --volumes --timeout 5')
  rmSync(place, { recursive: true, force: true })
})

async function sh(script: string): Promise<string> {
  const { stdout } = await run('sh', ['-ec', script], { cwd: join(place, 'deploy'), env, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

/** Commands of the page's block that contains this text. */
function typed(mark: string): string {
  const blocks = [...PAGE.matchAll(/^```sh[^\n]*\n(.*?)^```/gms)].map((match) => match[1]!)
  return blocks.find((text) => text.includes(mark))!
}

/** An older version has made the database: the same program, without the newest migration. */
const OLDER = `
  const { MIGRATIONS } = await import('/opt/errand/dist/store/migrations/migrations.js')
  MIGRATIONS.length -= 1
  process.argv.splice(1, process.argv.length, 'keys', 'create', '--name', 'from before')
  await import('/opt/errand/dist/main.js')`

async function migrations(): Promise<number> {
  const query = 'select count(*) from migrations'
  return Number(await sh(`docker compose exec -T postgres psql -U postgres -d errand -Atc '${query}'`))
}

test('migrates an older database, runs with files, stops gracefully, and is restored from a backup', async () => {
  // s3rver knows one key; all else is as the page makes it.
  const secrets = typed('openssl rand')
    .split('\n')
    .filter((line) => !/^(cd |docker )/.test(line))
    .join('\n')
  await sh(`${secrets}\nsed -i 's/^\\(S3_.*\\)=.*/\\1=S3RVER/' .env`)

  await sh('docker compose up --detach --wait postgres s3 && docker compose run --rm database')
  const key = (
    await sh(`docker compose run --rm --no-deps -T --entrypoint node errand -e '${OLDER.replaceAll("'", '"')}'`)
  ).trim()
  expect(key).toMatch(/^errand_sk_\w{38}$/)
  expect(await migrations()).toBe(MIGRATIONS.length - 1)

  // The upgrade.
  await sh(typed('docker compose pull').replace(/^docker compose pull.*$/m, ''))
  expect(await migrations()).toBe(MIGRATIONS.length)

  const headers = { 'x-svc-api-key': key, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/v1beta/interactions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      instruction: 'What was the average maximum temperature by month in seattle-weather.csv? Plot it, too.',
      tools: ['code_execution'],
      files: [{ name: 'seattle-weather.csv', content: WEATHER }],
    }),
  })
  const made = (await answer.json()) as { id: string; output: string; files: { url: string }[] }
  expect(made).toMatchObject({ status: 'completed', output: expect.stringContaining('26.11') })
  const { origin, pathname, search } = new URL(made.files[0]!.url)
  expect(origin).toBe('http://localhost:8080')
  const chart = await (await fetch(url + pathname + search)).text()
  expect(chart).toMatch(/^<svg/)
  // The wall of row-level security stands, for the role is no superuser; and files are in the bucket.
  expect(await sh('docker compose exec -T errand errand doctor || true')).toContain(
    'keeps projects apart by row-level security',
  )
  expect(await sh('docker compose exec -T s3 find /data/errand -type f')).not.toBe('')

  await sh(typed('pg_dump'))
  await sh('docker compose stop errand')
  expect(await sh(`docker compose ps --all --format '{{.ExitCode}}' errand`)).toBe('0\n')
  expect(await sh('docker compose logs errand')).toContain('Stopping: running interactions have 20 s to end.')
  await sh('docker compose down --volumes --timeout 5')

  await sh(typed('pg_restore'))
  const kept = await fetch(`${url}/v1beta/interactions/${made.id}`, { headers })
  expect(await kept.json()).toMatchObject({ status: 'completed', output: made.output })
  expect(await (await fetch(url + pathname + search)).text()).toBe(chart)
}, 300_000)

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done))
  const { port } = probe.address() as { port: number }
  await new Promise((done) => probe.close(done))
  return port
}
