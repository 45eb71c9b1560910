/**
 * Every example runs as it stands, against a fresh server with the settings that examples/README.md names; where an
 * example is about what only a real model does (skills, MCP), a scripted one does it.
 */
import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

const run = promisify(execFile)
const EXAMPLES = resolve(import.meta.dirname, '../../examples')
const PYTHONPATH = resolve(EXAMPLES, '../clients/python/src')

let provider: FakeProvider
let scratch: string
let demo: Server
let scripted: Server
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'errand-examples-'))
  provider = await openFakeProvider()
  demo = await startServer({ env: { ERRAND_EGRESS_ALLOW_PRIVATE: '127.0.0.1:8090' } })
  const mounts = [{ source: join(EXAMPLES, 'mcp'), target: '/glossary' }]
  const glossary = { command: ['node', '/glossary/server.js'], mounts }
  scripted = await startServer({ provider, env: { ERRAND_MCP: JSON.stringify({ glossary }) } })
})
afterAll(async () => {
  await demo?.stop()
  await scripted?.stop()
  await provider?.close()
  await rm(scratch, { recursive: true, force: true })
})

function env(server: Server, extra: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { HOME, PATH } = process.env
  return { HOME, PATH, PYTHONPATH, ERRAND_BASE_URL: server.url, ERRAND_API_KEY: server.key, ...extra }
}

/** Returns the output. Throws with the output if the program fails. */
async function printed(server: Server, example: string, extra: Record<string, string> = {}): Promise<string> {
  const program = example.endsWith('.py') ? '/usr/bin/python3' : process.execPath
  return (await run(program, [join(EXAMPLES, example)], { cwd: scratch, env: env(server, extra) })).stdout
}

async function withExpress(server: Server, use: (url: string) => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [join(EXAMPLES, 'express/server.js')], { env: env(server, { PORT: '0' }) })
  try {
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text))
    await until(() => /listening on \S+/.test(said))
    await use(`${/listening on (\S+)/.exec(said)![1]}/ask`)
  } finally {
    child.kill()
  }
}

const FIBONACCI = '0, 1, 1, 2, 3, 5, 8, 13, 21, 34'

describe('with the demo model', () => {
  test('a first call', async () => {
    const text = await printed(demo, 'first-call.ts')
    expect(text).toContain(FIBONACCI)
    expect(text).toMatch(/completed: \d+ tokens in, \d+ out/)
  })

  test('streaming to a terminal', async () => {
    const text = await printed(demo, 'stream.ts')
    expect(text).toMatch(/● code_execution .*→ .*79.*completed/s)
  })

  test('files in and out', async () => {
    const text = await printed(demo, 'files.ts')
    const saved = /saved (\S+\.svg)/.exec(text)![1]!
    expect(saved).toMatch(new RegExp(`^${scratch}/results/int_\\w+/`))
    expect(await readFile(saved, 'utf8')).toMatch(/^<svg/)
  })

  test('a background run, and the webhook that reports its end', async () => {
    const secret = (await demo.errand(['webhooks', 'secret'])).stdout.trim()
    const text = await printed(demo, 'webhook.ts', { ERRAND_WEBHOOK_SECRET: secret })
    expect(text).toMatch(/started int_/)
    expect(text).toMatch(/interaction\.completed: .*34/s)
  })

  test('a stream that is left and resumed, and a run that is cancelled', async () => {
    const lines = (await printed(demo, 'cancel-and-resume.ts')).trim().split('\n')
    const ids = lines.flatMap((line) => (/^[12] {2}(\d+)/.exec(line) ? [Number(/^[12] {2}(\d+)/.exec(line)![1])] : []))
    expect(ids).toEqual(ids.map((_, i) => i + 1))
    expect(lines.filter((line) => line.startsWith('2 ')).at(-1)).toMatch(/completed$/)
    expect(lines.at(-1)).toMatch(/^the other run: (cancelled|completed)$/)
  })

  test('a notebook in Python', async () => {
    const text = await printed(demo, 'notebook.py')
    expect(text).toContain('26.11')
    expect(text).toMatch(/int_\S+ completed/)
    expect((await readdir(join(scratch, 'results'))).filter((name) => name.endsWith('.svg'))).toHaveLength(1)
  })

  test('Express passes a stream on', async () => {
    await withExpress(demo, async (url) => {
      const answer = await fetch(url, { method: 'POST', body: 'Compute the first 10 Fibonacci numbers' })
      expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/)
      const text = await answer.text()
      expect(text).toMatch(/^id: 1\nevent: /)
      expect(text).toMatch(/event: completed\ndata: .*"status":"completed"/)
    })
  })

  test('a route handler of Next passes the text on', async () => {
    const code = `
      const { POST } = await import(${JSON.stringify(join(EXAMPLES, 'next/app/api/run/route.ts'))})
      const ask = (body) => POST(new Request('http://next.test/api/run', { method: 'POST', body: JSON.stringify(body) }))
      const bad = await ask({})
      const good = await ask({ instruction: 'Compute the first 10 Fibonacci numbers' })
      console.log(JSON.stringify([bad.status, good.status, good.headers.get('content-type'), await good.text()]))`
    const flags = ['--input-type=module', '--eval', code]
    const { stdout } = await run(process.execPath, flags, { cwd: scratch, env: env(demo) })
    const [bad, good, type, text] = JSON.parse(stdout)
    expect([bad, good, type]).toEqual([400, 200, 'text/plain; charset=utf-8'])
    expect(text).toContain('34')
  })

  test('the curl lines of examples/README.md', async () => {
    await cp(EXAMPLES, join(scratch, 'examples'), { recursive: true, filter: (path) => !path.endsWith('node_modules') })
    const page = await readFile(join(EXAMPLES, 'README.md'), 'utf8')
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```/gms)]
      .map((match) => match[1]!)
      .filter((text) => /curl/.test(text))
    expect(blocks.length).toBeGreaterThanOrEqual(3)
    for (const block of blocks) {
      const script = block.replaceAll('http://127.0.0.1:8080', demo.url)
      const { stdout } = await run('sh', ['-c', script], { cwd: join(scratch, 'examples'), env: env(demo) })
      expect(stdout, block).toMatch(/"status":"completed"/)
    }
  })
})

describe('with a model that does as the example means', () => {
  test('an agent with a skill', async () => {
    provider.when(
      '(17 * 23 + 4) / 5',
      { toolCalls: [{ name: 'skill', args: { name: 'house-style' } }] },
      { text: 'It is 79.00, without a unit.' },
    )
    for (const _ of ['made', 'changed']) {
      const text = await printed(scripted, 'agent_with_skill.py')
      expect(text).toMatch(/● skill .*house-style.*\n.*79\.00/)
      const { body } = await scripted.get('/v1beta/agents/analyst')
      expect(body.skills).toEqual(['house-style'])
    }
  })

  test('an MCP server of the operator', async () => {
    provider.when(
      'epoch',
      { toolCalls: [{ name: 'glossary__look_up', args: { word: 'epoch' } }] },
      { text: 'It counts how often a run was taken up.' },
    )
    const text = await printed(scripted, 'mcp/mcp.ts')
    expect(text).toContain('→ How often an interaction was taken up')
    expect(text).toContain('It counts how often')
    expect(text).not.toContain('warning')
  })

  test('Express ends a run whose caller goes away', async () => {
    const code = 'import time; time.sleep(600)'
    provider.when('[long]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Awake.' })
    await withExpress(scripted, async (url) => {
      const gone = new AbortController()
      const answer = await fetch(url, { method: 'POST', body: 'sleep [long]', signal: gone.signal })
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
      for (let text = ''; !text.includes('event: tool_call'); ) text += (await reader.read()).value
      gone.abort()
      await reader.read().catch(() => {})
      await until(async () => {
        const { body } = await scripted.get('/v1beta/interactions?pageSize=1')
        return body.interactions[0].status === 'cancelled'
      })
    })
  })
})
