/** The command line as people and scripts use it: the real program in its own process, next to a real server. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { runCommand, type Server, startServer } from '../support/server.ts'

const MAIN = join(import.meta.dirname, '../../src/main.ts')

let provider: FakeProvider
let server: Server
let scratch: string

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'errand-cli-'))
  provider = await openFakeProvider()
  server = await startServer({ provider })
})

afterAll(async () => {
  await server.stop()
  await provider.close()
  rmSync(scratch, { recursive: true })
})

type Outcome = Awaited<ReturnType<typeof runCommand>>

/** Runs a command outside the server's data directory. */
function alone(args: readonly string[], extra: Record<string, string> = {}): Promise<Outcome> {
  return runCommand(args, { PATH: process.env.PATH, HOME: scratch, ERRAND_HOME: scratch, ...extra })
}

function remote(...args: string[]): Promise<Outcome> {
  return server.errand([...args, '--server', server.url, '--key', server.key])
}

/** Asserts that a message to a person consists of sentences and has no stack trace. */
function expectSentence(message: string): void {
  expect(message).toMatch(/[.)]\n$/)
  expect(message).not.toMatch(/^\s+at |\.ts:\d+/m)
}

describe('usage', () => {
  test('help exits with 0, anything that cannot be parsed with 2', async () => {
    expect((await alone(['--help'])).code).toBe(0)
    expect((await alone(['run', '--help'])).stdout).toContain('Exit codes: 0 completed')
    for (const args of [
      ['nonsense'],
      ['run'],
      ['keys', 'create'],
      ['run', 'x', '--max-seconds', '0'],
      ['run', 'x', '--nope'],
      ['run', 'x', '--effort', 'extreme'],
      ['run', 'x', '--temperature', '2.1'],
      ['run', 'x', '--temperature', ''],
      ['agents', 'create', '--verbosity', 'none'],
      ['nonsense', '--help'],
      ['help', 'nonsense'],
      ['keys', 'nonsense', '--help'],
      ['keys', 'nonsense', '-h'],
    ]) {
      expect(await alone(args), args.join(' ')).toMatchObject({ code: 2, stdout: '' })
    }
    expect((await alone(['nonsense', '--help'])).stderr).toContain("unknown command 'nonsense'")
    for (const args of [
      ['help', 'run'],
      ['keys', 'create', '--help'],
      ['keys', '--help'],
      ['run', 'nonsense', '--help'],
    ]) {
      expect(await alone(args), args.join(' ')).toMatchObject({ code: 0, stderr: '' })
    }
  })

  test('reports invalid values before anything starts', async () => {
    const cases: [string[], string][] = [
      [['run', ' '], 'There is no instruction'],
      [['run', 'x', '--label', 'x'], 'it must be KEY=VALUE'],
      [['run', 'x', '--file', 'nowhere.csv'], '--file nowhere.csv can’t be read (ENOENT)'.replace('’', "'")],
      [['run', 'x', '--server', 'nowhere'], 'it must be an address like'],
      [['run', 'x', '--server', 'http://127.0.0.1:1'], 'give --key KEY or set ERRAND_API_KEY'],
      [['settings', 'set', 'experimental.x', 'on'], 'there is experimental.managedAgents'],
      [['settings', 'set', 'experimental.managedAgents', 'maybe'], 'must be on or off'],
    ]
    for (const [args, message] of cases) {
      const { code, stderr } = await alone(args)
      expect(stderr).toContain(message)
      expectSentence(stderr)
      expect(code).toBe(2)
    }
  })
})

describe('a server that cannot start prints a sentence', () => {
  test('with every problem of the configuration at once', async () => {
    const { code, stderr, stdout } = await alone(['serve'], { ERRAND_PORT: 'x', ERRAND_PROT: '1' })
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toBe(
      'The configuration has 2 problems:\n' +
        '  - ERRAND_PORT is "x"; it must be a whole number from 0 to 65535.\n' +
        '  - There is no setting ERRAND_PROT. Did you mean ERRAND_PORT?\n',
    )
    expect((await alone(['config', 'check'], { ERRAND_PORT: 'x' })).code).toBe(1)
    expect((await alone(['config', 'check'])).code).toBe(0)
  })

  test('`config check` reports each variable that the configuration names and that is not set', async () => {
    const file = join(scratch, 'keys.yaml')
    writeFileSync(
      file,
      `models:
  svc-3.5-flash: {provider: openai, model: m, apiKeyEnv: TEAM_KEY}
  other: {provider: anthropic, model: m}
search: {provider: brave}
mcp:
  tracker: {url: 'https://mcp.example.com', authentication: {type: bearer, tokenEnv: TRACKER_TOKEN}}
  desk: {url: 'https://desk.example.com', authentication: {type: headers, headersEnv: {X-Key: DESK_KEY}}}
`,
    )
    const check = (env: Record<string, string>) => alone(['config', 'check', '--config', file], env)
    const { code, stdout, stderr } = await check({})
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      'The configuration has 5 problems:\n' +
        '  - The environment variable TEAM_KEY is not set. It must hold the key for the model svc-3.5-flash.\n' +
        '  - The environment variable ANTHROPIC_API_KEY is not set. It must hold the key for the model other.\n' +
        '  - search.provider is brave, but the environment variable BRAVE_API_KEY with its API key is not set.\n' +
        '  - mcp.tracker.authentication.tokenEnv names the environment variable TRACKER_TOKEN, which is not set.\n' +
        '  - mcp.desk.authentication.headersEnv.X-Key names the environment variable DESK_KEY, which is not set.\n',
    )
    const keys = { TEAM_KEY: 'k', ANTHROPIC_API_KEY: 'k', BRAVE_API_KEY: 'k', TRACKER_TOKEN: 'k', DESK_KEY: 'k' }
    expect(await check(keys)).toMatchObject({ code: 0, stderr: '' })
  })

  test('about a feature that this version does not have', async () => {
    const { code, stderr } = await alone(['serve'], { ERRAND_SANDBOX: 'kubernetes' })
    expect(stderr).toContain('ERRAND_SANDBOX is "kubernetes"; it must be one of bubblewrap, docker.')
    expect(code).toBe(1)
  })

  test('about a port in use, and how to choose another', async () => {
    const { port } = new URL(server.url)
    const { code, stdout, stderr } = await alone(['serve'], { ERRAND_PORT: port, ERRAND_LOG: 'silent' })
    expect(stderr).toContain(`Port ${port} on 127.0.0.1 is in use by another program.`)
    expect(stderr).toContain('ERRAND_PORT=8081')
    // The first key exists now, and the next start would not show it.
    expect(stdout).toMatch(/^The first API key, shown only once: errand_sk_\w{38}\n$/)
    expectSentence(stderr)
    expect(code).toBe(1)
  })

  test('about a data directory that is a file', async () => {
    writeFileSync(join(scratch, 'file'), '')
    const { code, stderr } = await alone(['serve'], { ERRAND_DATA_DIR: join(scratch, 'file') })
    expect(stderr).toContain(`The data directory ${join(scratch, 'file')} is not a directory.`)
    expectSentence(stderr)
    expect(code).toBe(1)
  })

  test('about an invalid database, and stops the sandbox host that it had started', async () => {
    const dataDir = mkdtempSync(join(scratch, 'data-'))
    writeFileSync(join(dataDir, 'errand.db'), 'no database at all, and longer than the head of one would have to be')
    const { code, stderr } = await alone(['serve'], { ERRAND_DATA_DIR: dataDir, ERRAND_PORT: '0' })
    expect(code).toBe(1)
    expect(stderr).toBe('file is not a database\n')
    expect(readFileSync(join(dataDir, 'sandbox/host.log'), 'utf8')).toMatch(
      /sandbox host started[\s\S]*sandbox host ended/,
    )
  })

  test('about missing bubblewrap and how to install it; the doctor reports it too and checks the rest', async () => {
    const [serve, doctor] = [await withoutBubblewrap('serve'), await withoutBubblewrap('doctor')]
    expect(serve.stderr).toMatch(/apt-get install -y bubblewrap/)
    expectSentence(serve.stderr)
    expect(serve).toMatchObject({ code: 1, stdout: '' })
    expect(doctor.stdout).toContain(
      '  fail  bwrap is not installed. On Debian and Ubuntu: apt-get install -y bubblewrap',
    )
    expect(doctor.stdout).toMatch(/ {2}ok {4}The data directory/)
    expect(doctor.code).toBe(1)
  })

  /** Runs a command in a mount namespace whose /usr/bin lacks bwrap. */
  async function withoutBubblewrap(command: string): Promise<Outcome> {
    const layer = mkdtempSync(join(scratch, 'layer-'))
    const script = `mount -t tmpfs tmpfs ${layer} && mkdir ${layer}/upper ${layer}/work &&
      mount -t overlay overlay -o lowerdir=/usr/bin,upperdir=${layer}/upper,workdir=${layer}/work /usr/bin && rm /usr/bin/bwrap &&
      exec ${process.execPath} ${MAIN} ${command}`
    const env = {
      PATH: process.env.PATH,
      ERRAND_DATA_DIR: join(scratch, 'no-bwrap'),
      ERRAND_PORT: '0',
      ERRAND_LOG: 'silent',
    }
    const child = spawn('unshare', [process.getuid?.() === 0 ? '-m' : '-rm', 'sh', '-c', script], { env })
    const [stdout, stderr, code] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1))),
    ])
    return { stdout, stderr, code }
  }
})

describe('keys and settings', () => {
  test('prints a new key alone on stdout; it works at once, is listed without its text, and stops working when revoked', async () => {
    const made = await server.errand(['keys', 'create', '--name', 'ci', '--project', 'builds'])
    expect(made.code).toBe(0)
    expect(made.stdout).toMatch(/^errand_sk_\w{38}\n$/)
    const key = made.stdout.trim()
    const headers = { 'x-svc-api-key': key }
    expect((await server.get('/v1beta/agents', headers)).status).toBe(200)

    const listed = await server.errand(['keys', 'list'])
    expect(listed.stdout).toMatch(/ci +builds +errand_sk_\w{4}…/)
    expect(listed.stdout).not.toContain(key)

    const id = /key_\w{22}/.exec(made.stderr)![0]
    expect((await server.errand(['keys', 'revoke', id])).code).toBe(0)
    expect((await server.get('/v1beta/agents', headers)).status).toBe(401)
    expect((await server.errand(['keys', 'list'])).stdout).not.toContain(id)
    expect((await server.errand(['keys', 'list', '--all'])).stdout).toMatch(new RegExp(`${id}.*revoked`))
    expect(await server.errand(['keys', 'revoke', 'key_none'])).toMatchObject({ code: 1, stdout: '' })
  })

  test('switching the service off makes every call fail with 403', async () => {
    const name = 'experimental.managedAgents'
    expect((await server.errand(['settings', 'get'])).stdout).toBe(`${name} on\n`)
    expect((await server.errand(['settings', 'set', name, 'off'])).code).toBe(0)
    expect((await server.get('/v1beta/agents')).status).toBe(403)
    const refused = await remote('run', 'hello')
    expect(refused.stderr).toContain('The server refused (403)')
    expect(refused.code).toBe(4)
    expect((await server.errand(['settings', 'set', name, 'on'])).code).toBe(0)
    expect((await server.get('/v1beta/agents')).status).toBe(200)
  })
})

describe('agents', () => {
  test('are created, listed, changed, read and deleted on a server', async () => {
    const made = await remote(
      'agents',
      'create',
      '--id',
      'summer',
      '--name',
      'Summer',
      '--tool',
      'code_execution',
      '--system',
      'Add.',
    )
    expect(JSON.parse(made.stdout)).toMatchObject({
      id: 'summer',
      displayName: 'Summer',
      tools: ['code_execution'],
      version: 1,
    })
    expect((await remote('agents', 'list')).stdout).toMatch(/^ID +NAME.*\nsummer +Summer +/)
    const file = join(scratch, 'agent.yaml')
    writeFileSync(file, 'displayName: Winter\ndescription: cold\n')
    const changed = await remote('agents', 'update', 'summer', '--from', file, '--description', 'colder')
    expect(JSON.parse(changed.stdout)).toMatchObject({
      displayName: 'Winter',
      description: 'colder',
      systemInstruction: 'Add.',
      version: 2,
    })
    expect(JSON.parse((await remote('agents', 'get', 'summer')).stdout)).toMatchObject({ version: 2 })
    expect((await remote('agents', 'delete', 'summer')).code).toBe(0)
    expect(await remote('agents', 'get', 'summer')).toMatchObject({ code: 4, stdout: '' })
  })

  test('are visible in process too, on the same data directory', async () => {
    await remote('agents', 'create', '--id', 'shared')
    const { stdout, code } = await server.errand(['agents', 'get', 'shared'])
    expect(JSON.parse(stdout)).toMatchObject({ id: 'shared' })
    expect(code).toBe(0)
  })
})

describe('run', () => {
  const SUM =
    "import os\nos.makedirs('outputs', exist_ok=True)\nprint(open('in.txt').read())\nopen('outputs/out.txt', 'w').write('42')"

  test('shows the whole run on a server, without colors in a pipe, and saves its files', async () => {
    provider.when(
      '[files]',
      { text: 'Let me look.', toolCalls: [{ name: 'code_execution', args: { code: SUM } }] },
      { text: 'It is 42.' },
    )
    const input = join(scratch, 'in.txt')
    writeFileSync(input, 'six times seven')
    const { code, stdout, stderr } = await remote('run', '[files]', 'go', '--file', input, '--out', scratch)
    expect(stderr).toBe(
      `The server at ${server.url} answers with svc-3.5-flash (openai-compatible, from errand.yaml).\n`,
    )
    expect(stdout).not.toContain('\x1b')
    expect(stdout).toContain('  Let me look.\n')
    expect(stdout).toContain('● code_execution python\n  │ import os\n')
    expect(stdout).toContain('    six times seven\n')
    expect(stdout).toContain('\nIt is 42.\n')
    expect(stdout).toMatch(/completed in [\d.]+ s · 2 model calls · 1 tool call · 20 tokens in, 10 out/)
    expect(code).toBe(0)
    const saved = / → (.*)\n/.exec(stdout)![1]!
    expect(readFileSync(saved, 'utf8')).toBe('42')
  })

  test('runs in process if no server is running on the data directory', async () => {
    provider.when(
      '[alone]',
      { toolCalls: [{ name: 'code_execution', args: { code: 'print(6 * 7)' } }] },
      { text: 'It is 42.' },
    )
    const home = mkdtempSync(join(scratch, 'alone-'))
    const { code, stdout, stderr } = await alone(['run', '[alone]'], { ERRAND_HOME: home, ...otherModel(provider) })
    expect(stderr).toBe(
      `This process, as no server is running on ${home}/data, answers with svc-3.5-flash (openai-compatible, from errand.yaml).\n`,
    )
    expect(stdout).toContain('    42\n')
    expect(stdout).toContain('\nIt is 42.\n')
    expect(code).toBe(0)
  })

  /** Settings of a shell that configures other models than the server. */
  function otherModel({ url }: FakeProvider): Record<string, string> {
    const model = { provider: 'openai-compatible', baseUrl: url, model: 'other' }
    return { ERRAND_MODELS: JSON.stringify({ 'svc-3.5-flash': model }) }
  }

  describe('beside a running server', () => {
    let other: FakeProvider
    beforeAll(async () => {
      other = await openFakeProvider()
      other.when('[whose]', { text: "From the shell's own model." })
      provider.when('[whose]', { text: "From the server's model." })
    })
    afterAll(() => other.close())

    test('the server on the data directory answers, with its own model and without a key', async () => {
      const shell = { ERRAND_DATA_DIR: server.dataDir, ...otherModel(other) }
      const { code, stdout, stderr } = await alone(['run', '[whose]'], shell)
      expect(stdout).toContain("From the server's model.\n")
      expect(stderr).toBe(
        `The server at ${server.url}, which is running on ${server.dataDir}, answers with svc-3.5-flash (openai-compatible, from errand.yaml).\n`,
      )
      expect(code).toBe(0)
      const listed = await alone(['agents', 'list'], { ...shell, ERRAND_API_KEY: 'errand_sk_no' })
      expect(listed.stderr).toContain('The server refused (401)')
    })

    test('the server that ERRAND_BASE_URL names answers, and needs a key', async () => {
      const shell = { ERRAND_BASE_URL: server.url, ...otherModel(other) }
      const { code, stdout, stderr } = await alone(['run', '[whose]'], { ...shell, ERRAND_API_KEY: server.key })
      expect(stdout).toContain("From the server's model.\n")
      expect(stderr).toContain(`The server at ${server.url} (ERRAND_BASE_URL) answers with svc-3.5-flash`)
      expect(code).toBe(0)
      const keyless = await alone(['run', '[whose]'], shell)
      expect(keyless.stderr).toContain('give --key KEY or set ERRAND_API_KEY')
      expect(keyless.stderr).toContain('keys create --name NAME')
      expectSentence(keyless.stderr)
      expect(keyless.code).toBe(2)
    })

    test('after the server was killed, this process answers', async () => {
      const killed = await startServer({ provider })
      await killed.stop('SIGKILL')
      const shell = { ERRAND_DATA_DIR: killed.dataDir, ...otherModel(other) }
      const { code, stdout, stderr } = await alone(['run', '[whose]'], shell)
      expect(stderr).toContain(`This process, as no server is running on ${killed.dataDir}, answers with`)
      expect(stdout).toContain("From the shell's own model.\n")
      expect(code).toBe(0)
      rmSync(killed.dataDir, { recursive: true })
    })
  })

  test('reads the instruction from stdin, and --json prints the interaction and nothing else', async () => {
    provider.when('[stdin]', { text: 'Read.' })
    const args = ['run', '-', '--json', '--label', 'a=b', '--system', 'Be kind.', '--max-seconds', '9']
    const { code, stdout, stderr } = await server.errand(
      [...args, '--server', server.url, '--key', server.key],
      '[stdin] hello',
    )
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'completed',
      output: 'Read.',
      instruction: '[stdin] hello',
      labels: { a: 'b' },
      resolved: { systemInstruction: 'Be kind.', policy: { maxTurnDuration: 9 } },
    })
    expect(stderr).toContain('answers with svc-3.5-flash')
    expect(code).toBe(0)
  })

  test('sends effort, temperature and verbosity, of runs and of agents', async () => {
    provider.when('[parameters]', { text: 'x' })
    await remote('agents', 'create', '--id', 'thinker', '--effort', 'high', '--verbosity', 'low')
    const args = ['run', '[parameters]', '--json', '--agent', 'thinker', '--temperature', '0.2']
    const { resolved } = JSON.parse((await remote(...args)).stdout)
    expect(resolved).toMatchObject({ reasoning: { effort: 'high' }, temperature: 0.2, verbosity: 'low' })
    const none = JSON.parse((await remote(...args, '--effort', 'none')).stdout)
    expect(none.resolved.reasoning).toEqual({ effort: 'none' })
  })

  test('enables the usual tools, unless some are named or an agent brings its own', async () => {
    provider.when('[tools]', { text: 'x' })
    await remote('agents', 'create', '--id', 'reader', '--tool', 'file_read')
    const tools = async (...args: string[]) =>
      JSON.parse((await remote('run', '[tools]', '--json', ...args)).stdout).resolved.tools
    expect(await tools()).toEqual(['code_execution', 'file_read', 'file_write'])
    expect(await tools('--tool', 'file_write')).toEqual(['file_write'])
    expect(await tools('--agent', 'reader')).toEqual(['file_read'])
  })

  test('a failed run ends with 1 and says what failed', async () => {
    provider.when('[fails]', { fault: 'status:400', errorMessage: 'No such thing.' })
    const { code, stdout } = await remote('run', '[fails]')
    expect(stdout).toContain('✗ model_error: ')
    expect(stdout).toContain('failed in ')
    expect(code).toBe(1)
  })

  test('exits with 4 if no server answers or the key is wrong', async () => {
    const nobody = await alone(['run', 'x', '--server', 'http://127.0.0.1:1', '--key', 'k'])
    expect(nobody.stderr).toContain("http://127.0.0.1:1 can't be reached")
    expectSentence(nobody.stderr)
    expect(nobody.code).toBe(4)
    const wrong = await alone(['run', 'x', '--server', server.url], { ERRAND_API_KEY: 'errand_sk_no' })
    expect(wrong.stderr).toContain('The server refused (401)')
    expect(wrong.code).toBe(4)
  })

  test('Ctrl-C cancels the run on the server and ends with 130; a run that another cancels ends with 3', async () => {
    provider.when('[long]', {
      toolCalls: [
        { name: 'code_execution', args: { code: "print('begun', flush=True)\nimport time\ntime.sleep(600)" } },
      ],
    })
    const interrupted = start(['run', '[long]', '--server', server.url, '--key', server.key])
    await interrupted.said('begun')
    interrupted.process.kill('SIGINT')
    expect(await interrupted.code).toBe(130)
    const { interactions } = (await server.get('/v1beta/interactions?pageSize=1')).body
    expect(interactions[0].status).toBe('cancelled')

    const watched = start(['run', '[long]', '--server', server.url, '--key', server.key])
    await watched.said('begun')
    const running = (await server.get('/v1beta/interactions?pageSize=1')).body.interactions[0]
    expect((await server.post(`/v1beta/interactions/${running.interactionId}:cancel`)).status).toBe(200)
    expect(await watched.code).toBe(3)
  })

  function start(args: readonly string[]) {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env.PATH, ERRAND_HOME: scratch },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8')
    const said = (text: string) =>
      new Promise<void>((resolve, reject) => {
        child.stdout.on('data', (chunk: string) => {
          output += chunk
          if (output.split('\n').includes(`    ${text}`)) resolve()
        })
        child.once('exit', () => reject(new Error(`It ended before it said ${text}:\n${output}`)))
      })
    const code = new Promise<number | null>((resolve) => child.once('exit', resolve))
    return { process: child, said, code }
  }
})

describe('serve', () => {
  test('prints address, key, model, sandbox, and a command that works when pasted', async () => {
    provider.when('17 * 23', { text: '391' })
    const said = server.output()
    expect(said).toContain(`is listening on ${server.url}`)
    expect(said).toMatch(new RegExp(`^ {2}console +${server.url}/console/welcome#\\w{43} `, 'm'))
    expect(said).toContain(server.key)
    expect(said).toContain('svc-3.5-flash, svc-3.1-pro → fake (openai-compatible), from errand.yaml')
    const line = said.split('\n').find((text) => text.trim().startsWith('curl '))!
    const shell = spawn('bash', ['-c', line], { stdio: ['ignore', 'pipe', 'inherit'] })
    let answer = ''
    for await (const chunk of shell.stdout) answer += chunk
    expect(JSON.parse(answer)).toMatchObject({ status: 'completed', output: '391' })
  })

  test('shows its first key once; its address file is private and is removed when the server stops', async () => {
    const first = await startServer({ provider })
    await first.stop('SIGINT')
    const second = await startServer({ dataDir: first.dataDir, key: first.key })
    // It accepts calls before it has printed everything.
    while (!second.output().includes('x-svc-api-key: $ERRAND_API_KEY')) await sleep(20)
    expect(second.output()).not.toContain(first.key)
    expect((await second.get('/v1beta/agents')).status).toBe(200)
    expect(statSync(join(first.dataDir, 'server.json')).mode & 0o777).toBe(0o600)
    expect(await second.stop()).toBe(0)
    expect(existsSync(join(first.dataDir, 'server.json'))).toBe(false)
    rmSync(first.dataDir, { recursive: true })
  })

  test('--example runs the example through the API on the first start only, and keeps serving', async () => {
    const home = mkdtempSync(join(scratch, 'first-'))
    const first = await serveUntil(home, 'from another terminal')
    // Computed from the example's file.
    expect(first.stdout).toMatch(/August +█+ +26\.11\n/)
    expect(first.stdout).toMatch(/\.svg \(\d+ bytes\) http:/)
    expect(first.stdout).toContain('completed in ')
    expect(first.code).toBe(0)
    const second = await serveUntil(home, 'curl ')
    expect(second.stdout).not.toContain('An example')
    expect(second.code).toBe(0)
  })

  test('starts each log line on a new line if stdout and stderr go to the same file', async () => {
    const home = mkdtempSync(join(scratch, 'one-place-'))
    const env = { PATH: process.env.PATH, ERRAND_HOME: home, ERRAND_PORT: '0' }
    const child = spawn('sh', ['-c', `exec ${process.execPath} ${MAIN} serve --example 2>&1`], { env })
    let said = ''
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      said += chunk
      if (said.includes('from another terminal')) child.kill('SIGTERM')
    }
    const logged = said.split('\n').filter((line) => line.includes('{"level":'))
    expect(logged.length).toBeGreaterThan(2)
    for (const line of logged) expect(() => JSON.parse(line), line).not.toThrow()
  })

  async function serveUntil(home: string, words: string): Promise<{ stdout: string; code: number | null }> {
    const env = { PATH: process.env.PATH, ERRAND_HOME: home, ERRAND_PORT: '0', ERRAND_LOG: 'silent' }
    const child = spawn(process.execPath, [MAIN, 'serve', '--example'], { env })
    const code = new Promise<number | null>((resolve) => child.once('exit', resolve))
    let stdout = ''
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      stdout += chunk
      if (stdout.includes(words)) child.kill('SIGTERM')
    }
    return { stdout, code: await code }
  }

  test('lets running interactions end when it is asked to stop', async () => {
    const hold = Promise.withResolvers<void>()
    provider.when('[drain]', { text: ['one ', 'two'], hold: hold.promise, holdAfter: 1 })
    const draining = await startServer({ provider })
    const stream = await draining.stream('/v1beta/interactions:stream', { instruction: '[drain]' })
    const first = await stream.events.next()
    expect(first.done).toBe(false)
    const stopped = draining.stop()
    hold.resolve()
    const rest = await stream.all()
    expect(rest.at(-1)).toMatchObject({ event: 'completed', data: { status: 'completed' } })
    expect(await stopped).toBe(0)
  })
})

describe('doctor', () => {
  test('reports on this machine while a server is running', async () => {
    const { code, stdout } = await server.errand(['doctor'])
    expect(stdout).toMatch(/ {2}ok {4}Node 24/)
    expect(stdout).toContain('svc-3.5-flash, svc-3.1-pro → fake (openai-compatible), from errand.yaml')
    expect(stdout).toContain('Available: code_execution, file_read, file_write')
    expect(stdout).toContain('The server can run here.')
    expect(stdout).not.toContain('  fail')
    expect(code).toBe(0)
  })
})
