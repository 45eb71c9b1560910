/** The browser's processes: their sandbox, crashes, memory exhaustion and cleanup. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { hostPid, until } from '../sandbox/fixture.ts'
import { type Server, startServer } from '../support/server.ts'
import { drive, paused, type Step } from './drive.ts'
import { openSite, type Site } from './site.ts'

let site: Site
let provider: FakeProvider
let server: Server

const BOMB = `<title>Bomb</title><script>
  const held = []
  const more = () => { for (let i = 0; i < 40; i++) held.push(new Uint8Array(1e6).fill(1)); setTimeout(more, 0) }
  setTimeout(more, 300)
</script>`

beforeAll(async () => {
  site = await openSite({
    '/': '<title>Home</title><p>Well and alive</p>',
    '/bomb': BOMB,
    '/loop': '<title>Loop</title><script>for (;;);</script>',
    '/many': '<title>Many</title><script>for (let i = 0; i < 40; i++) window.open("/")</script>',
    '/alerts':
      '<title>Alerts</title><script>let n = 0; const again = () => { alert(++n); if (n < 100) setTimeout(again) }; again()</script>',
    '/huge': `<title>Huge</title>${'<p>A long paragraph of a page that does not end</p>'.repeat(5_000)}`,
  })
  provider = await openFakeProvider()
  server = await start()
})

afterAll(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
  await site.close()
})

function start(again?: Server): Promise<Server> {
  return startServer({
    provider,
    config: { egress: { allowPrivate: [`127.0.0.1:${site.port}`] }, browser: { memoryMiB: 640 } },
    env: { ERRAND_LEASE_S: '2' },
    ...(again && { dataDir: again.dataDir, key: again.key }),
  })
}

interface Process {
  readonly pid: number
  readonly command: string
  readonly status: Readonly<Record<string, string>>
}

/** Chromium processes below this server's sandbox host. Other tests run browsers too. */
function browsers(): Process[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    const stat = readQuietly(`/proc/${name}/stat`)
    parents.set(Number(name), Number(/^.*\) \S (\d+)/s.exec(stat)?.[1]))
  }
  const root = hostPid(server.dataDir)
  const isBelow = (pid: number): boolean => pid === root || (parents.has(pid) && isBelow(parents.get(pid)!))
  return [...parents.keys()].filter(isBelow).flatMap((pid) => {
    const command = readQuietly(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
    const lines = readQuietly(`/proc/${pid}/status`).split('\n')
    const status = Object.fromEntries(lines.map((line) => line.split(/:\s*/, 2)))
    return /^\S*(chromium|chrome)/.test(command) ? [{ pid, command, status }] : []
  })
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const held = (outputs: readonly string[]) => outputs.at(-1) ?? ''

test('renderers run in Chromium’s own sandbox, inside Errand’s', async () => {
  const { step, reached, release } = paused({ action: 'snapshot' })
  const running = drive(server, provider, [{ action: 'open', url: site.url('/') }, step])
  await reached
  const found = browsers()
  const main = found.find(({ command }) => !command.includes('--type='))!
  const renderers = found.filter(({ command }) => command.includes('--type=renderer'))
  expect(renderers.length).toBeGreaterThan(0)
  for (const { pid, command, status } of renderers) {
    expect(command).not.toContain('--no-sandbox')
    expect(status).toMatchObject({ Seccomp: '2', NoNewPrivs: '1', CapEff: '0000000000000000' })
    // Two seccomp filters: Errand's and Chromium's.
    expect(Number(status.Seccomp_filters)).toBeGreaterThanOrEqual(2)
    for (const name of ['user', 'net', 'pid']) {
      expect(readlinkSync(`/proc/${pid}/ns/${name}`)).not.toBe(readlinkSync(`/proc/${main.pid}/ns/${name}`))
    }
    // The root is the directory of a process that has exited, so it is empty.
    expect(readlinkSync(`/proc/${pid}/root`)).toMatch(/^\/proc\/\d+\/fdinfo/)
  }
  release()
  const { outputs } = await running
  expect(held(outputs)).toContain('Well and alive')
  await until(() => browsers().length === 0)
})

test('reports pages that hang, grow without limit, crash or show dialogs, and then opens the next page', async () => {
  const home: Step = { action: 'open', url: site.url('/') }
  const { outputs, body } = await drive(server, provider, [
    { action: 'open', url: site.url('/loop') },
    home,
    { action: 'open', url: site.url('/huge') },
    { action: 'open', url: site.url('/bomb') },
    { action: 'wait', seconds: 30, text: 'never said' },
    home,
    { action: 'open', url: site.url('/many') },
    { action: 'open', url: site.url('/alerts') },
    { action: 'close' },
    home,
  ])
  expect(body.status).toBe('completed')
  const [loop, after, huge, bomb = '', bombed = '', again, many, alerts, , last] = outputs
  expect(loop).toContain('The page does not answer')
  expect(after).toContain('Well and alive')
  expect(huge).toContain('[… the page is longer')
  expect(huge!.length).toBeLessThan(64_000)
  expect(bomb + bombed).toMatch(/The page crashed|browser was ended because it needed more|The browser crashed/)
  expect(again).toContain('Well and alive')
  expect(many).toContain('tried to open more than 10 tabs')
  expect(alerts).toContain('The page showed an alert: "1". It was accepted.')
  expect(last).toContain('Well and alive')
})

test('reports that the browser was killed, and starts a new one', async () => {
  const home: Step = { action: 'open', url: site.url('/') }
  const { step, reached, release } = paused({ action: 'snapshot' })
  const running = drive(server, provider, [home, step, home])
  await reached
  for (const { pid, command } of browsers()) if (!command.includes('--type=')) process.kill(pid, 'SIGKILL')
  release()
  const { outputs } = await running
  expect(outputs.slice(-2).join('\n')).toMatch(/The browser (crashed\. Its pages are gone|was restarted)/)
  expect(held(outputs)).toContain('Well and alive')
})

test('no browser remains after a run was cancelled or its server was killed', async () => {
  const cancelled = paused({ action: 'snapshot' })
  const cancelling = drive(server, provider, [{ action: 'open', url: site.url('/') }, cancelled.step]).catch(() => {})
  await cancelled.reached
  const { body } = await server.get('/v1beta/interactions?status=running')
  const answer = await server.post(`/v1beta/interactions/${body.interactions[0].interactionId}:cancel`)
  expect([answer.status, browsers().length]).toEqual([200, 0])
  cancelled.release()
  await cancelling

  const killed = paused({ action: 'open', url: site.url('/') })
  const lost = drive(server, provider, [{ action: 'open', url: site.url('/') }, killed.step]).catch(() => {})
  await killed.reached
  const { interactions } = (await server.get('/v1beta/interactions?status=running')).body
  await server.stop('SIGKILL')
  await lost
  server = await start(server)
  killed.release()
  const id = interactions[0].interactionId
  await (await server.stream(`/v1beta/interactions/${id}:stream`)).all()
  const ended = (await server.get(`/v1beta/interactions/${id}`)).body
  expect(ended.status).toBe('completed')
  const last = ended.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result').at(-1).output
  expect(last).toMatch(/The browser was restarted[\s\S]*Well and alive/)
  expect(browsers().length).toBe(0)
})
