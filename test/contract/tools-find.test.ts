/** Checks `find` in a real sandbox: files by name, lines by a regular expression, and what a result leaves out. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, type Call, python, toolRunner } from '../support/tool-run.ts'

const OUTPUT_BYTES = 4096

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000 }
  server = await startServer({ provider, config: { limits, sandbox: { pool: 0, outputBytes: OUTPUT_BYTES } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)

const find = (args: object): Call => ({ name: 'find', args })
const text = (name: string, content: string) => ({ name, content })

const FILES = [
  text('readme.md', 'A tool.\nIt can parse.\n'),
  text('src/main.py', 'import parse\n\ndef main():\n    parse.parse(1)\n'),
  text('src/deep/parse.py', 'def parse(x):\r\n    return x\r\n'),
  text('src/deep/page.ts', 'export {}\n'),
  text('.secret/parse.py', 'def parse(): ...\n'),
  text('.env', 'PARSE=1\n'),
]

/** Returns the result of each call of a completed run. */
async function outputs(calls: readonly Call[], request: object = { files: FILES }): Promise<readonly string[]> {
  const { answer, body, outputs: all } = await run(calls, request)
  expect(answer.status, answer.text).toBe(200)
  expect(body, answer.text).toMatchObject({ status: 'completed', output: 'Done.' })
  expect(all).toHaveLength(calls.length)
  return all
}

describe('find is offered', () => {
  const offered = () => provider.requests.at(-1)!.body.tools?.map(({ function: { name } }) => name)

  it('with file_read only, and is not a tool that callers name', async () => {
    const { body } = await run([find({})], { tools: ['file_read'], files: FILES })
    expect(offered()).toEqual(['file_read', 'find'])
    expect(body.resolved.tools).toEqual(['file_read'])
    const other = await run([find({})], { tools: ['file_write', 'find'] })
    expect(offered()).toEqual(['file_write'])
    expect(other.body.warnings).toEqual([expect.objectContaining({ code: 'unknown_tool' })])
    expect(other.outputs[0]).toMatch(/There is no tool "find"/)
  })

  it('and its calls are steps of the trace', async () => {
    const { body } = await run([find({ pattern: 'x' })], { files: FILES })
    expect(body.executionTrace).toMatchObject([
      { type: 'tool_call', name: 'find', args: { pattern: 'x' } },
      { type: 'tool_result', output: expect.stringContaining('src/deep/parse.py\n1\tdef parse(x):\n2\t    return x') },
    ])
  })
})

describe('find by name', () => {
  it('matches names in every directory, or paths if the glob has a slash', async () => {
    const all = await outputs([
      find({ glob: '*.py' }),
      find({ glob: 'src/*.py' }),
      find({ glob: 'src/**/*.{py,ts}' }),
      find({ glob: 'p[!b-z]??.??', path: 'src' }),
      find({ glob: '*.rs' }),
    ])
    expect(all.map((output) => output.split('\n').slice(0, -1))).toEqual([
      ['src/deep/parse.py', 'src/main.py'],
      ['src/main.py'],
      ['src/deep/page.ts', 'src/deep/parse.py', 'src/main.py'],
      ['src/deep/page.ts'],
      [],
    ])
    expect(all[0]).toMatch(/\n\[2 files; skipped 2 hidden \(name them in glob or path\)\]$/)
    expect(all[4]).toMatch(/^\[Nothing matched/)
  })

  it('includes hidden files and directories that the glob or the path names', async () => {
    const all = await outputs([find({ glob: '.env*' }), find({ glob: '.secret/*' }), find({ path: '.secret' })])
    expect(all.map((output) => output.split('\n')[0])).toEqual(['.env', '.secret/parse.py', '.secret/parse.py'])
  })
})

describe('find by pattern', () => {
  it('returns lines with their numbers below the name of their file', async () => {
    const [lines, some, one] = await outputs([
      find({ pattern: 'parse' }),
      find({ pattern: String.raw`(?i)^DEF \w+\(.*:$`, glob: '*.py' }),
      find({ pattern: 'import', path: 'src/main.py' }),
    ])
    expect(lines).toBe(
      'readme.md\n2\tIt can parse.\n\nsrc/deep/parse.py\n1\tdef parse(x):\n\nsrc/main.py\n1\timport parse\n4\t    parse.parse(1)\n' +
        '[4 lines in 3 files; skipped 2 hidden (name them in glob or path)]',
    )
    expect(some).toMatch(
      /^src\/deep\/parse\.py\n1\tdef parse\(x\):\n\nsrc\/main\.py\n3\tdef main\(\):\n\[2 lines in 2 files/,
    )
    expect(one).toBe('src/main.py\n1\timport parse\n[1 line in 1 file]')
  })

  it('skips binary and very large files and says so; reads other encodings', async () => {
    const make = `
open('a.bin', 'wb').write(b'needle\\0')
open('wide.txt', 'wb').write('\\ufeffneedle wide'.encode('utf-16-le'))
open('latin.txt', 'wb').write('needle caf\\xe9'.encode('latin-1'))
open('large.txt', 'wb').truncate(33 * 1024 * 1024)`
    const request = { policy: { sandbox: { workspaceMiB: 64 } } }
    const [, found] = await outputs([python(make), find({ pattern: 'needle' })], request)
    expect(found).toContain('latin.txt\n1\tneedle café\n\nwide.txt\n1\tneedle wide\n[2 lines in 2 files; ')
    expect(found).toContain('skipped 1 binary; skipped 1 over 32 MiB]')
  })

  it('shows a part of a long line, with the match', async () => {
    const files = [text('min.js', `${'a'.repeat(5_000)}needle${'b'.repeat(5_000)}`)]
    const [found] = await outputs([find({ pattern: 'needle' })], { files })
    expect(found).toMatch(/^min\.js\n1\t…a+needleb+…\n\[1 line in 1 file\]$/)
    expect(found!.length).toBeLessThan(400)
  })

  it('returns at most 200 lines, 500 files and the maximum output, and says that there is more', async () => {
    const lines = Array.from({ length: 300 }, (_, i) => `n ${i}`).join('\n')
    const make = 'import os\nos.mkdir("many")\nfor i in range(600): open("many/%03d" % i, "w")'
    const [, files, few, long] = await outputs(
      [python(make), find({ path: 'many' }), find({ pattern: '^n' }), find({ pattern: '^x' })],
      { files: [text('short', lines), text('long', `x${'y'.repeat(99)}\n`.repeat(100))] },
    )
    expect(files!.split('\n')).toHaveLength(Math.floor(OUTPUT_BYTES / 'many/000\n'.length) + 1)
    expect(few).toMatch(
      /\n200\tn 199\n\[200 lines in 1 file; stopped there, more match: narrow glob, pattern or path\]$/,
    )
    for (const output of [files, long]) {
      expect(Buffer.byteLength(output!)).toBeLessThan(OUTPUT_BYTES + 200)
      expect(output).toMatch(/stopped there, more match/)
    }
  })

  it('stops a pattern that takes too long, while the server answers others', async () => {
    const files = [text('a', 'needle'), text('evil', `${'a'.repeat(60)}!`)]
    const policy = { maxToolDuration: 7 }
    const slow = outputs([find({ pattern: '(needle|(a|aa)+$)' })], { files, policy })
    const health = await server.request('GET', '/healthz')
    expect(health.status).toBe(200)
    expect((await slow)[0]).toMatch(/^a\n1\tneedle\n\[1 line in 1 file; stopped after [\d.]+ s at evil: narrow/)
  })
})

describe('find refuses', () => {
  it('an invalid pattern, a missing path, and paths outside the readable directories', async () => {
    const all = await outputs([
      find({ pattern: '(' }),
      find({ path: 'missing' }),
      find({ path: '/proc/self', pattern: '.' }),
      find({ path: '../etc', pattern: '.' }),
      find({ path: '\ud800', glob: '\ud800' }),
    ])
    expect(all[0]).toMatch(/^find did nothing: `pattern` is not valid: missing \)/)
    expect(all[1]).toMatch(
      /^find did nothing: There is no file or directory `missing`\. The working directory contains: /,
    )
    expect(all[2]).toMatch(/^find did nothing: .*closed/)
    expect(all[3]).toMatch(/^find did nothing: `path` must not contain "\.\."/)
    expect(all[4]).toMatch(/^find did nothing: /)
  })

  it('to follow links or wait for pipes', async () => {
    const [, all, link, below] = await outputs(
      [
        bash('ln -s /etc/passwd link; ln -s /etc dir; mkfifo pipe; echo root > own'),
        find({ pattern: 'root' }),
        find({ pattern: 'root', path: 'link' }),
        find({ pattern: 'root', path: 'dir/passwd' }),
      ],
      {},
    )
    expect(all).toMatch(/^own\n1\troot\n\[1 line in 1 file/)
    for (const refused of [link, below]) expect(refused).toMatch(/symbolic link, which is not followed/)
  })
})
