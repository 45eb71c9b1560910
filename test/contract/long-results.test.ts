/** Checks that a long result of a tool costs the model little, and that the whole of it is in a file of the sandbox. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, javascript, python, readFile, scripted, type ToolRun, toolRunner } from '../support/tool-run.ts'
import { ended, until } from './invariants.ts'

const PATH = '/v1beta/interactions'
const TOKEN = 'planted-mcp-t0ken-77aa'
/** Prints 5,000,000 bytes: 100,000 numbered lines. */
const FIVE_MB = `for i in range(100000): print(f"line {i:06}", "x" * 37)`
const FIVE_MB_TEXT = Array.from(
  { length: 100_000 },
  (_, i) => `line ${`${i}`.padStart(6, '0')} ${'x'.repeat(37)}\n`,
).join('')
/** Texts of English have about four bytes a token, numbers and code three. */
const tokens = (text: string) => Buffer.byteLength(text) / 3

let provider: FakeProvider
let mcp: FakeMcp
let dataDir: string
let server: Server
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  dataDir = await mkdtemp(join(tmpdir(), 'errand-long-'))
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([provider?.close(), mcp?.close()])
  await rm(dataDir, { recursive: true, force: true })
})

function start(key?: string): Promise<Server> {
  const config = { egress: { allowPrivate: [mcp.address] } }
  return startServer({ provider, dataDir, config, env: { ERRAND_LEASE_S: '1' }, ...(key && { key }) })
}

const run = toolRunner(
  () => server,
  () => provider,
)

/** The results in the newest request, as the model gets them. */
function shown(): string[] {
  const messages = provider.requests.at(-1)!.body.messages as { role: string; content: string }[]
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
}

const results = ({ body }: Pick<ToolRun, 'body'>) =>
  body.executionTrace.filter(({ type }: { type: string }) => type === 'tool_result')

const FILE = /\/tmp\/errand\/step-\d+-\w{6}\.txt/
/** Code that reads the newest file of results. */
const NEWEST = `import glob, os, hashlib; data = open(max(glob.glob('/tmp/errand/*'), key=os.path.getmtime), 'rb').read()`

describe('5 MB of output', () => {
  it('cost the model less than 6,000 tokens, and are whole in a file', async () => {
    const made = await run([python(FIVE_MB), python(`${NEWEST}; print(len(data), hashlib.sha256(data).hexdigest())`)])
    const [first] = results(made)
    expect(first.full).toEqual({ path: expect.stringMatching(FILE), bytes: FIVE_MB_TEXT.length })
    expect(Buffer.byteLength(first.output)).toBeGreaterThan(60_000)
    const [head] = shown()
    expect(tokens(head!)).toBeLessThan(6_000)
    expect(head).toMatch(/^line 000000 x+\nline 000001 x/)
    expect(head).toMatch(/\nline 099998 x+\nline 099999 x+\n\[The output was longer than .* has all of it\.\]$/)
    expect(head).toContain(`5,000,000 bytes, was written to ${first.full.path}: `)
    for (const line of head!.split('\n')) expect(line).toMatch(/^line \d{6} x{37}$|^\[(?:… |The output)/)
    expect(made.outputs[1]).toBe(`5000000 ${createHash('sha256').update(FIVE_MB_TEXT).digest('hex')}`)
  })

  it('can be read with file_read, by any language, and are no output file', async () => {
    const marker = scripted(provider, [bash(`seq 1 700000`)])
    const stream = await server.stream(`${PATH}:stream`, {
      instruction: marker,
      tools: ['code_execution', 'file_read'],
    })
    const events = await stream.all()
    const { full } = events.find(({ event }) => event === 'tool_result')!.data
    expect(full.bytes).toBe(4_788_895)
    // The path has the interaction's id in it, so the next run reads its own.
    const last = `console.log(require('fs').readdirSync('/tmp/errand'))`
    const made = await run([
      javascript('console.log(Array.from({ length: 100_000 }, (_, i) => i).join(","))'),
      javascript(last),
    ])
    expect(results(made)[0].full.bytes).toBe(588_890)
    expect(made.outputs[1]).toMatch(/^\[ 'step-1-\w{6}\.txt' \]$/)
    expect(made.body.files).toEqual([])
  })

  it('are found by file_read at the path that the model got, by lines', async () => {
    const marker = `[reads ${Date.now()}]`
    let path = ''
    provider.when(
      marker,
      { toolCalls: [python(FIVE_MB)] },
      ({ body: { messages } }) => {
        path = FILE.exec(String(messages.at(-1)!.content))![0]
        return { toolCalls: [readFile(path, { startLine: 50_001, endLine: 50_002 })] }
      },
      { text: 'Done.' },
    )
    const { body } = await server.post(PATH, { instruction: marker, tools: ['code_execution', 'file_read'] })
    const [, read] = results({ body })
    expect(read.output).toMatch(
      /: lines 50001-50002 of 100000, 5000000 bytes\]\n50001\tline 050000 x+\n50002\tline 050001 /,
    )
    expect(read.full).toBeUndefined()
  })
})

it('says that the file is cut when the output is longer than it may be', async () => {
  const made = await run([
    python('for _ in range(40): print("y" * 1024 * 1024)'),
    python(`${NEWEST}; print(len(data))`),
  ])
  const [{ full, output }] = results(made)
  expect(made.outputs[1]).toBe(String(full.bytes))
  expect(full.bytes).toBeGreaterThan(16 * 1024 * 1024)
  expect(full.bytes).toBeLessThanOrEqual(32 * 1024 * 1024)
  expect(output).toContain(`${full.path} has only its first ${full.bytes.toLocaleString('en')} bytes.]`)
  expect(shown()[0]).toContain('bytes.]')
})

it('makes no file for 16 KiB, and none for pages of file_read', async () => {
  const made = await run([
    python('print("z" * 16383)'),
    python('open("long.txt", "w").write("word\\n" * 12000); import os; print(os.path.exists("/tmp/errand"))'),
    readFile('long.txt'),
  ])
  expect(made.outputs[0]).toBe('z'.repeat(16_383))
  expect(made.outputs[1]).toBe('False')
  expect(results(made).map(({ full }: { full?: object }) => full)).toEqual([undefined, undefined, undefined])
  expect(shown()[2]!.length).toBeGreaterThan(60_000)
})

it('sends the same request after the server is killed, and to the next interaction', async () => {
  const marker = `[killed ${Date.now()}]`
  provider.when(marker, { toolCalls: [python(FIVE_MB)] }, [{ fault: 'stall' }, { text: 'Done.' }])
  const { body } = await server.post(PATH, { instruction: marker, tools: ['code_execution'], background: true })
  const asked = () => provider.requests.filter((request) => JSON.stringify(request.body).includes(marker))
  await until(() => asked().length === 2)
  await server.stop('SIGKILL')
  server = await start(server.key)
  await ended(server, body.interactionId)
  const [, before, after] = asked().map((request) => request.body)
  expect(after).toEqual(before)
  const next = { instruction: 'And now?', previousInteractionId: body.interactionId }
  provider.when('And now?', { text: 'Nothing.' })
  await server.post(PATH, next)
  expect(shown()).toEqual([before!.messages.at(-1)!.content])
})

describe('200 KB of an MCP server', () => {
  const text = `${`record ${'m'.repeat(93)}\n`.repeat(1000)}token ${TOKEN}\n${`record ${'n'.repeat(93)}\n`.repeat(1000)}`
  const begin = (tools: string[], calls: Parameters<typeof scripted>[1]) => {
    mcp.onCall = () => text
    const instruction = scripted(provider, calls)
    return server.post(PATH, { instruction, tools, mcp: [{ name: 'm', url: mcp.url, authentication: TOKEN }] })
  }
  const call = { name: 'm__say', args: {} }

  it('are in a file, without the secret', async () => {
    const answer = await begin(
      ['code_execution'],
      [call, bash('cat /tmp/errand/*.txt | wc -c; grep -h token /tmp/errand/*')],
    )
    const [said, read] = results(answer)
    const bytes = Buffer.byteLength(text) - TOKEN.length + '[secret]'.length
    expect(said.full).toEqual({ path: expect.stringMatching(FILE), bytes })
    expect(read.output).toBe(`${bytes}\ntoken [secret]`)
    expect(tokens(shown()[0]!)).toBeLessThan(6_000)
    expect(shown()[0]).toContain(said.full.path)
    expect(JSON.stringify([answer.body, provider.requests.at(-1)!.body])).not.toContain(TOKEN)
  })

  it('are shortened without a file if the run has no tool that could read one', async () => {
    const answer = await begin(['web_search'], [call])
    const [said] = results(answer)
    expect(said.full).toBeUndefined()
    expect(Buffer.byteLength(said.output)).toBeLessThanOrEqual(65_536)
    expect(said.output).toMatch(/^record m+\n.*\n\[… \d+ bytes left out …\]\n.*record n+\n$/s)
    expect(shown()).toEqual([said.output])
  })
})
