/** Checks the operator's interface: health, metrics, the first start, failed starts, and shutdown. */
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, runCommand, type Server, type ServerOptions, startServer } from '../support/server.ts'

const METRICS_KEY = 'metrics-key-of-the-test'

type HeaderMap = Readonly<Record<string, string | undefined>>

let provider: FakeProvider
let home: string
const started: Server[] = []
beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('', () => ({ text: 'Done.' }))
  home = await mkdtemp(join(tmpdir(), 'errand-operator-'))
})
afterEach(async () => {
  for (const server of started.splice(0)) if (server.process.exitCode === null) await server.stop()
})
afterAll(async () => {
  await provider?.close()
  await rm(home, { recursive: true, force: true })
})

async function start(options: Partial<ServerOptions> = {}): Promise<Server> {
  const server = await startServer({ provider, ...options })
  started.push(server)
  return server
}

/** Sends a request without an API key. */
async function open(url: string, headers: HeaderMap = {}): Promise<{ status: number; text: string; type: string }> {
  const response = await fetch(url, { headers: headers as Record<string, string> })
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') ?? '' }
}

/** Runs `errand …` with only these environment variables. */
function errand(args: readonly string[], env: Record<string, string>) {
  const { PATH, HOME } = process.env
  return runCommand(args, { PATH, HOME, NO_COLOR: '1', ...env })
}

describe('a running server', () => {
  it('reports without a key that it is alive and ready, but does not serve its metrics by default', async () => {
    const server = await start()
    expect((await open(`${server.url}/healthz`)).status).toBe(200)
    expect((await open(`${server.url}/readyz`)).status).toBe(200)
    for (const headers of [undefined, { authorization: 'Bearer x' }, { 'x-svc-api-key': server.key }]) {
      const { status, text } = await open(`${server.url}/metrics`, headers)
      expect([401, 403, 404]).toContain(status)
      expect(text).not.toMatch(/^# (HELP|TYPE)/m)
    }
  })

  it('serves its metrics on the main port for the metrics key', async () => {
    const server = await start({ config: { metrics: { key: METRICS_KEY } } })
    await server.post('/v1beta/interactions', { instruction: 'counted' })
    for (const headers of [undefined, { authorization: `Bearer ${METRICS_KEY}x` }, { 'x-svc-api-key': server.key }]) {
      expect([401, 403, 404]).toContain((await open(`${server.url}/metrics`, headers)).status)
    }
    const { status, text, type } = await open(`${server.url}/metrics`, { authorization: `Bearer ${METRICS_KEY}` })
    expect(status).toBe(200)
    expectPrometheus(text, type)
    expect(text).not.toContain(server.key)
    expect(server.output()).not.toContain(METRICS_KEY)
  })

  it('serves its metrics, and nothing else, on a separate port', async () => {
    const port = await freePort()
    const server = await start({ config: { metrics: { port } } })
    const { status, text, type } = await open(`http://127.0.0.1:${port}/metrics`)
    expect(status).toBe(200)
    expectPrometheus(text, type)
    expect((await open(`http://127.0.0.1:${port}/v1beta/agents`, { 'x-svc-api-key': server.key })).status).toBe(404)
    expect([401, 403, 404]).toContain((await open(`${server.url}/metrics`)).status)
  })
})

describe('the first start', () => {
  it('prints a working key and curl command; a second start prints no key; the data is private to its owner', async () => {
    const dataDir = join(home, 'first')
    const options = { dataDir: home, config: { sandbox: { pool: 0 } }, env: { ERRAND_DATA_DIR: dataDir } }
    // Private files must not depend on the umask, so this uses the most permissive one.
    const umask = process.umask(0)
    const first = await start(options).finally(() => process.umask(umask))
    expect((await first.get('/v1beta/agents')).status).toBe(200)
    const files = [{ name: 'in.txt', content: 'private' }]
    expect((await first.post('/v1beta/interactions', { instruction: 'kept', files })).status).toBe(200)
    expect(first.output()).toMatch(/curl .*\/v1beta\/interactions/)
    expect(first.output()).toContain('svc-3.5-flash')
    await expectPrivate(dataDir)
    expect(await first.stop()).toBe(0)
    await expectPrivate(dataDir)

    const second = await start({ ...options, config: undefined, key: first.key })
    const { status, body } = await second.get('/v1beta/interactions')
    expect(status).toBe(200)
    expect(body.interactions).toHaveLength(1)
    expect(second.output()).not.toMatch(/errand_sk_\w{20}/)
    expect(await second.stop()).toBe(0)
  })
})

describe('a start that fails', () => {
  it('reports in one sentence that the port is in use, and does not lose the first key', async () => {
    const server = await start()
    const { port } = new URL(server.url)
    const dataDir = join(home, 'taken')
    const failed = await errand(['serve'], { ERRAND_PORT: port, ERRAND_DATA_DIR: dataDir })
    expectOneSentence(failed, port)
    expect((await open(`${server.url}/healthz`)).status).toBe(200)
    // One of the two starts printed the key, exactly once, and it works.
    const [early] = /errand_sk_\w{38}/.exec(failed.stdout) ?? []
    const next = await start({ dataDir: home, env: { ERRAND_DATA_DIR: dataDir }, key: early })
    expect((await next.get('/v1beta/agents')).status).toBe(200)
    expect(next.output().includes('errand_sk_')).toBe(early === undefined)
  })

  it('reports in one sentence that the data directory is not a directory', async () => {
    const file = join(home, 'a-file')
    await writeFile(file, '')
    expectOneSentence(await errand(['serve'], { ERRAND_PORT: '0', ERRAND_DATA_DIR: file }), file)
  })

  it('reports every problem of the configuration at once, in serve and in config check', async () => {
    const config = join(home, 'bad.yaml')
    await writeFile(
      config,
      'port: eighty\nlimits: {callsPerMinute: -1, maxTurnDuration: {max: forever}}\nmodels: {m: {provider: magic}}\ncolour: red\n',
    )
    const env = { ERRAND_CONFIG: config, ERRAND_DATA_DIR: join(home, 'bad'), ERRAND_LOG: 'loud' }
    for (const args of [['serve'], ['config', 'check']]) {
      const { code, stdout, stderr } = await errand(args, env)
      expect(code).toBe(1)
      const said = stdout + stderr
      for (const problem of ['port', 'callsPerMinute', 'maxTurnDuration', 'provider', 'colour', 'ERRAND_LOG']) {
        expect(said).toContain(problem)
      }
      expect(said).not.toMatch(/^\s+at /m)
    }
  })

  it('refuses an unsupported setting instead of using another one', async () => {
    const env = { ERRAND_PORT: '0', ERRAND_DATA_DIR: join(home, 'unsupported'), ERRAND_SANDBOX: 'kubernetes' }
    const { code, stderr } = await errand(['serve'], env)
    expect(code, stderr).toBe(1)
    expect(stderr).not.toMatch(/^\s+at /m)
  })

  it('refuses to serve a public address without TLS', async () => {
    const env = { ERRAND_PORT: '0', ERRAND_DATA_DIR: join(home, 'open'), ERRAND_HOST: '0.0.0.0' }
    const { code, stderr } = await errand(['serve'], env)
    expect(code).toBe(1)
    expect(stderr).toMatch(/tls|https/i)
  })

  it('names a configuration file that is missing or not valid YAML', async () => {
    const broken = join(home, 'broken.yaml')
    await writeFile(broken, 'port: [8080\n')
    for (const config of [join(home, 'missing.yaml'), broken]) {
      const { code, stdout, stderr } = await errand(['config', 'check'], { ERRAND_CONFIG: config })
      expect(code).toBe(1)
      expect(stdout + stderr).toContain(config)
      expect(stdout + stderr).not.toMatch(/^\s+at /m)
    }
  })

  it('does not follow from a valid configuration, which config check accepts', async () => {
    const config = join(home, 'good.yaml')
    await writeFile(config, 'limits: {callsPerMinute: 10}\n')
    const { code, stderr } = await errand(['config', 'check'], {
      ERRAND_CONFIG: config,
      ERRAND_DATA_DIR: join(home, 'g'),
    })
    expect(code, stderr).toBe(0)
  })
})

describe('SIGTERM', () => {
  it('lets the running interaction end, refuses new ones with 503, and exits with 0', async () => {
    const server = await start({ dataDir: await mkdtemp(join(home, 'drain-')), config: { drainS: 60 } })
    const gate = Promise.withResolvers<void>()
    const before = provider.requests.length
    provider.when('[drains]', { text: ['Not ', 'lost.'], hold: gate.promise, holdAfter: 1 })
    const blocking = server.post('/v1beta/interactions', { instruction: 'go [drains]' })
    await provider.received(before + 1)
    const [running] = (await server.get('/v1beta/interactions')).body.interactions
    const stream = await server.stream(`/v1beta/interactions/${running.interactionId}:stream`)
    const exited = new Promise((resolve) => server.process.once('exit', resolve))
    server.process.kill('SIGTERM')
    while ((await open(`${server.url}/readyz`)).status === 200) await new Promise((resolve) => setTimeout(resolve, 20))
    expect((await open(`${server.url}/readyz`)).status).toBe(503)
    const refused: Answer[] = []
    for (const fields of [{}, { background: true }, { stream: true }]) {
      refused.push(await server.post('/v1beta/interactions', { instruction: 'too late', ...fields }))
    }
    for (const answer of refused) {
      expect(answer.status, answer.text).toBe(503)
      expect(errorOf(answer)).toMatchObject({ code: 'unavailable', retryable: true })
    }
    gate.resolve()
    const answer = await blocking
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body).toMatchObject({ status: 'completed', output: 'Not lost.' })
    expect((await stream.all()).at(-1)).toMatchObject({ event: 'completed', data: { status: 'completed' } })
    expect(await exited).toBe(0)
  })

  it('leaves an interaction that does not end in time to the next start, which completes it', async () => {
    const options = { dataDir: await mkdtemp(join(home, 'handed-')), config: { drainS: 0.2, sandbox: { pool: 0 } } }
    const first = await start(options)
    const before = provider.requests.length
    provider.when('[handed]', [{ text: 'Never.', hold: new Promise(() => {}) }, { text: 'After all.' }])
    const { body } = await first.post('/v1beta/interactions', { instruction: 'go [handed]', background: true })
    await provider.received(before + 1)
    expect(await first.stop()).toBe(0)
    const second = await start({ ...options, config: undefined, key: first.key })
    const events = await (await second.stream(`/v1beta/interactions/${body.interactionId}:stream`)).all()
    expect(events.at(-1)).toMatchObject({ event: 'completed', data: { status: 'completed' } })
    expect((await second.get(`/v1beta/interactions/${body.interactionId}`)).body.output).toBe('After all.')
    await second.stop()
  })

  it('ends an idle server immediately with 0', async () => {
    const server = await start()
    expect(await server.stop()).toBe(0)
  })
})

function expectPrometheus(text: string, type: string): void {
  expect(type).toMatch(/^(text\/plain|application\/openmetrics-text)/)
  expect(text).toMatch(/^# TYPE \w+ (counter|gauge|histogram|summary)$/m)
  for (const line of text.split('\n').filter((line) => line && !line.startsWith('#'))) {
    expect(line).toMatch(/^[a-zA-Z_:][\w:]*(\{[^}]*\})? (NaN|[+-]?Inf|[-+\d.e]+)( \d+)?$/)
  }
}

function expectOneSentence({ code, stderr }: { code: number; stderr: string }, about: string): void {
  expect(code).toBe(1)
  const lines = stderr.trim().split('\n')
  expect(lines, stderr).toHaveLength(1)
  expect(lines[0]).toContain(about)
  expect(lines[0]).not.toMatch(/^Error|\bat .*:\d+:\d+/)
}

/** Asserts that group and others have no access to the directory and everything in it. */
async function expectPrivate(dir: string): Promise<void> {
  const modes = [[dir, (await stat(dir)).mode]] as [string, number][]
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    modes.push([path, (await stat(path)).mode])
  }
  expect(modes.length).toBeGreaterThan(1)
  for (const [path, mode] of modes) expect(mode & 0o077, `${path} is ${(mode & 0o777).toString(8)}`).toBe(0)
}

async function freePort(): Promise<number> {
  const probe = await openFakeProvider()
  await probe.close()
  return probe.port
}
