/** Tests of the npm package: packed by `npm pack` and installed into an empty directory, it works as from a checkout. */
import { execFile, type SpawnOptions, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findRuntimes } from '../clients/runtimes.ts'
import { npmInstall, npmPack, ROOT, userEnv } from './install.ts'

const run = promisify(execFile)
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }

let scratch: string
let packed: string
let home: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'errand-package-'))
  home = join(scratch, 'home')
  await mkdir(home)
  packed = await npmPack(ROOT, scratch)
  await npmInstall(home, packed)
}, 300_000)
afterAll(() => rm(scratch, { recursive: true, force: true }))

test('contains the program as JavaScript, the console and the files that they read, but no sources, tests or files of a checkout', async () => {
  const { stdout } = await run('tar', ['-tzf', packed])
  const files = stdout.trim().split('\n')
  for (const name of [
    'dist/main.js',
    'dist/client/index.js',
    'dist/store/sqlite/writer.js',
    'dist/engine/agent/schema-thread.js',
    'dist/sandbox/host/host-main.js',
    'dist/sandbox/runner/main.py',
    'dist/sandbox/host/probe/main.py',
    'dist/tools/browser/in-page/elements.js',
    'console/dist/index.html',
    'site/dist/index.html',
    'examples/first-run.json',
    'script/rootfs',
    'LICENSE',
  ]) {
    expect(files).toContain(`package/${name}`)
  }
  expect(
    files.filter((name) => /\.ts$|^package\/(src|test|bench|clients|data|node_modules)\/|\/\./.test(name)),
  ).toEqual([])
})

test('installs its runtime dependencies, and none that only a checkout needs', async () => {
  const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: home, env: userEnv() })
  expect(stdout).toMatch(/\/fastify$/m)
  expect(stdout).not.toMatch(/\/(node-linux-\w+|vite|vitest|typescript|react|playwright-core|s3rver)$/m)
})

test('`npx errand` prints its version, and `doctor` checks the machine', async () => {
  const said = await run('npx', ['errand', '--version'], { cwd: home, env: userEnv() })
  expect(said.stdout.trim()).toBe(version)
  const doctor = await run('npx', ['errand', 'doctor'], { cwd: home, env: userEnv({ ERRAND_PORT: '0' }) })
  expect(doctor.stdout).toContain('The server can run here.')
  expect(doctor.stdout).toContain('attacks of the self-test were blocked')
})

test('an older Node gets one line that names the required version', async () => {
  const { node } = await findRuntimes()
  const program = join(home, 'node_modules/errand/dist/main.js')
  for (const args of [['--version'], ['serve'], ['run', 'hello']]) {
    const { code, stdout, stderr } = await run(node, [program, ...args], { cwd: home, env: userEnv() }).then(
      () => ({ code: 0, stdout: '', stderr: '' }),
      (error) => error,
    )
    expect(stderr).toMatch(/^Errand needs Node 24 or newer; this is 20\.\d+\.\d+\. .*\n$/)
    expect([code, stdout]).toEqual([1, ''])
  }
}, 120_000)

test('`npx errand serve` runs code in a sandbox, serves the console and ends by Ctrl-C with nothing lost', async () => {
  const first = await serve('--example')
  await first.says(/npx errand run --file node_modules\/errand\/examples\/seattle-weather\.csv/)
  expect(first.said()).toMatch(/The chart is in outputs\/\S+\.svg/)
  const headers = { 'x-svc-api-key': first.key, 'content-type': 'application/json' }

  const answer = await fetch(`${first.url}/v1beta/interactions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ instruction: 'Compute the first 10 Fibonacci numbers', tools: ['code_execution'] }),
  })
  const interaction = (await answer.json()) as { id: string; status: string; output: string; executionTrace: object[] }
  expect(interaction).toMatchObject({ status: 'completed', output: expect.stringContaining('34') })
  expect(interaction.executionTrace).toContainEqual(expect.objectContaining({ name: 'code_execution' }))

  const page = await (await fetch(`${first.url}/console`)).text()
  const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(page)![1]!
  const code = await fetch(first.url + script)
  expect([code.status, code.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  const document = (await (await fetch(`${first.url}/openapi.json`)).json()) as { info: { version: string } }
  expect(document.info.version).toBeDefined()
  await first.stop()
  expect(first.said()).toContain('Stopping: running interactions have 20 s to end.')

  const second = await serve()
  const kept = await fetch(`${second.url}/v1beta/interactions/${interaction.id}`, { headers })
  expect(await kept.json()).toMatchObject({ status: 'completed', output: interaction.output })
  await second.stop()
})

/** Runs it as at a terminal: the whole process group receives Ctrl-C. */
async function serve(...args: string[]) {
  const env = userEnv({ ERRAND_PORT: '0' })
  const options: SpawnOptions = { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true }
  const child = spawn('npx', ['errand', 'serve', ...args], options)
  let text = ''
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (piece) => (text += piece))
  async function says(what: RegExp): Promise<string> {
    while (!what.test(text)) {
      const over = await Promise.race([
        ended.then(() => true),
        new Promise<false>((next) => setTimeout(next, 50, false)),
      ])
      if (over && !what.test(text)) throw new Error(`npx errand serve ended:\n${text}`)
    }
    return what.exec(text)![0]
  }
  return {
    url: await says(/http:\/\/127\.0\.0\.1:\d+/),
    key: await says(/errand_sk_\w{38}|\$ERRAND_API_KEY/),
    says,
    said: () => text,
    async stop() {
      process.kill(-child.pid!, 'SIGINT')
      await ended
    },
  }
}
