/**
 * Tests of the OpenAPI documents with other people's tools: two linters find no problems, and two generators create working clients
 * from the public one without a warning.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { EVERYTHING } from '../support/openapi.ts'
import { npmPackages, pythonPackages } from '../support/packages.ts'
import { type Server, startServer } from '../support/server.ts'
import { skillText, zip } from '../support/zip.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

let scratch: string
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'errand-generated-'))
  provider = await openFakeProvider()
  provider.when(
    '[works]',
    { reasoning: 'Well.', toolCalls: [{ name: 'code_execution', args: { code: 'print(6 * 7)' } }] },
    { text: 'It is 42.' },
  )
  server = await startServer({ provider })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await rm(scratch, { recursive: true, force: true })
})

const env = () => ({ ...process.env, ERRAND_BASE_URL: server.url, ERRAND_API_KEY: server.key })

async function save(path: string): Promise<string> {
  const file = join(scratch, path.replaceAll('/', '-'))
  await writeFile(file, (await server.get(path)).text)
  return file
}

/** Returns the output of the command, whatever its exit code. */
function printed(file: string, args: readonly string[], extra: NodeJS.ProcessEnv = {}): Promise<string> {
  return run(file, args, { cwd: scratch, env: { ...process.env, ...extra }, maxBuffer: 64 * 1024 * 1024 }).then(
    ({ stdout, stderr }) => stdout || stderr,
    ({ stdout, stderr }) => stdout || stderr,
  )
}

/** A program on the client that openapi-ts generates. The client has the server's address from the document. */
const TYPED = `
import { strict as assert } from 'node:assert'
import { client } from './client/client.gen.ts'
import { createInteraction, deleteInteraction, getInteraction, listInteractions, type ToolCallStep } from './client/index.ts'

assert.equal(client.getConfig().baseUrl, process.env.ERRAND_BASE_URL)
client.setConfig({ auth: () => process.env.ERRAND_API_KEY })

const { data: run, error } = await createInteraction({ body: { instruction: '[works]', tools: ['code_execution'] } })
assert(run && typeof run !== 'string', JSON.stringify(error))
const call: ToolCallStep | undefined = run.executionTrace.find((step) => step.type === 'tool_call')
assert.deepEqual(call?.args, { code: 'print(6 * 7)' })

const { data: again } = await getInteraction({ path: { id: run.id } })
assert.equal(again?.output, run.output)
const { data: page } = await listInteractions({ query: { pageSize: 5 } })
assert(page?.interactions.some(({ id }) => id === run.id))

await deleteInteraction({ path: { id: run.id }, throwOnError: true })
const gone = await getInteraction({ path: { id: run.id } })
assert.equal(gone.error?.error.code, 'not_found')
console.log(run.output)
`

/** Linters by name. Each returns its findings, one a line. */
const LINTERS: Record<string, (document: string) => Promise<readonly string[]>> = {
  'Redocly CLI': async (document) => {
    const redocly = join(await npmPackages('@redocly/cli@2.77.0'), 'node_modules/.bin/redocly')
    const args = ['lint', document, '--extends=recommended', '--format=json']
    const quiet = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    const { problems } = JSON.parse(await printed(redocly, args, quiet)) as {
      problems: { ruleId: string; message: string }[]
    }
    return problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)
  },
  Spectral: async (document) => {
    const spectral = join(await npmPackages('@stoplight/spectral-cli@6.16.3'), 'node_modules/.bin/spectral')
    const rules = join(scratch, 'spectral.json')
    // The document has no contact, because each server has another operator.
    await writeFile(rules, JSON.stringify({ extends: ['spectral:oas'], rules: { 'info-contact': 'off' } }))
    const found = JSON.parse(await printed(spectral, ['lint', '--quiet', '-r', rules, '-f', 'json', document]))
    return (found as { code: string; message: string; path: string[] }[]).map(
      ({ code, message, path }) => `${code}: ${message} (${path.join('.')})`,
    )
  },
}

test.each(Object.keys(LINTERS))(
  '%s finds nothing in either document, and something in a broken one',
  {
    timeout: 300_000,
  },
  async (linter) => {
    const lint = LINTERS[linter]!
    for (const path of ['/openapi.json', EVERYTHING]) expect(await lint(await save(path)), path).toEqual([])
    const broken = JSON.parse((await server.get('/openapi.json')).text)
    broken.paths['/v1beta/server'].get.operationId = 'createAgent'
    const file = join(scratch, 'broken.json')
    await writeFile(file, JSON.stringify(broken))
    expect((await lint(file)).join('\n')).toMatch(/operationid/i)
  },
)

test('openapi-python-client makes a client without a warning, and it works', { timeout: 300_000 }, async () => {
  const packages = await pythonPackages('openapi-python-client==0.29.1')
  const python = { PYTHONPATH: packages, PATH: `${packages}/bin:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: '1' }
  const config = join(scratch, 'openapi-python-client.json')
  // The generator does not know zips. This is its setting for unknown media types.
  await writeFile(config, JSON.stringify({ content_type_overrides: { 'application/zip': 'application/octet-stream' } }))
  const document = `${server.url}/openapi.json`
  const options = ['--output-path', join(scratch, 'python'), '--config', config, '--fail-on-warning']
  const args = ['-m', 'openapi_python_client', 'generate', '--url', document, ...options]
  await run('/usr/bin/python3', args, { env: { ...env(), ...python } })

  const skill = join(scratch, 'greeting.zip')
  await writeFile(skill, zip([{ name: 'SKILL.md', data: skillText('greeting', 'Greets.') }]))
  const { stdout } = await run('/usr/bin/python3', [join(import.meta.dirname, 'generated_client.py'), skill], {
    env: { ...env(), ...python, PYTHONPATH: `${packages}:${join(scratch, 'python')}` },
  })
  expect(stdout.trim()).toBe('It is 42.')
})

test('openapi-ts makes a client whose types hold, which knows the server’s address, and it works', async () => {
  const place = join(scratch, 'typescript')
  const config = join(scratch, 'openapi-ts.config.mjs')
  const settings = {
    // A file, so that the generator can take the server's address only from the document.
    input: await save('/openapi.json'),
    output: { path: join(place, 'client'), module: { extension: '.ts' } },
    logs: { level: 'warn' },
    plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
  }
  await writeFile(config, `export default ${JSON.stringify(settings)}`)
  await run(process.execPath, [join(ROOT, 'console/node_modules/.bin/openapi-ts'), '-f', config], { env: env() })
  await writeFile(join(place, 'package.json'), '{"type": "module"}')
  await writeFile(join(place, 'use.ts'), TYPED)
  await symlink(join(ROOT, 'node_modules'), join(place, 'node_modules'))
  const options =
    '--noEmit --strict --target es2024 --module nodenext --types node --allowImportingTsExtensions --skipLibCheck'
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options.split(' '), 'use.ts']
  await run(process.execPath, tsc, { cwd: place })
  const { stdout } = await run(process.execPath, ['use.ts'], { cwd: place, env: env() })
  expect(stdout.trim()).toBe('It is 42.')
})
