/** Checks inline input files, and the validation of `files` in a request. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { ALL_TOOLS, python, readFile, toolRunner } from '../support/tool-run.ts'

const INLINE_BYTES = 64 * 1024

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const limits = { interactionsPerMinute: 1_000_000, callsPerMinute: 1_000_000, inlineFilesBytes: INLINE_BYTES }
  server = await startServer({ provider, config: { limits } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64')

/** Prints `path sha256` of every regular file in the working directory. */
const HASH_ALL = python(`
import hashlib, os
for folder, _, names in sorted(os.walk('.')):
    for name in sorted(names):
        path = os.path.join(folder, name)
        print(os.path.relpath(path), hashlib.sha256(open(path, 'rb').read()).hexdigest())
`)

async function hashesInside(files: readonly object[]): Promise<Record<string, string>> {
  const { answer, outputs } = await run([HASH_ALL], { files })
  expect(answer.status, answer.text).toBe(200)
  return Object.fromEntries(outputs[0]!.split('\n').map((line) => line.split(/ (?=\S+$)/)))
}

describe('an inline file', () => {
  it('is listed in `resolved` and can be downloaded', async () => {
    const name = 'data/50% ü.txt'
    const { body } = await run(
      [python('import os\nos.makedirs("outputs/data")\nopen("outputs/data/50% ü.txt", "w").write("made")')],
      {
        files: [{ name, content: 'given' }],
      },
    )
    const [given, made] = [body.resolved.files[0], body.files[0]]
    expect(given).toMatchObject({ name, size: 5, mimeType: 'text/plain', sha256: sha256('given') })
    expect(await (await fetch(given.url)).text()).toBe('given')
    expect(await (await fetch(made.url)).text()).toBe('made')
    // The signature of one address is not valid for the other, although both files have the same name.
    for (const url of [given.url.replace('/input-files/', '/files/'), made.url.replace('/files/', '/input-files/')]) {
      expect((await fetch(url)).status).toBe(404)
    }
  })

  it('is in the working directory before the first tool call, byte for byte', async () => {
    const bytes = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256)
    const text = 'naïve — 文字 🦊\r\nno newline at the end'
    const files = [
      { name: 'plain.txt', content: 'plain' },
      { name: 'text.txt', content: text, encoding: 'utf-8' },
      { name: 'bytes.bin', content: base64(bytes), encoding: 'base64', mimeType: 'application/octet-stream' },
      { name: 'data.bin', data: base64(bytes) },
      { name: 'empty.txt', content: '' },
      { name: 'deep/er/still/file.txt', content: 'deep' },
      { name: 'with space — ü.txt', content: 'odd' },
      { name: 'nul.bin', content: 'a\0b' },
    ]
    expect(await hashesInside(files)).toEqual({
      'plain.txt': sha256('plain'),
      'text.txt': sha256(text),
      'bytes.bin': sha256(bytes),
      'data.bin': sha256(bytes),
      'empty.txt': sha256(''),
      'deep/er/still/file.txt': sha256('deep'),
      'with space — ü.txt': sha256('odd'),
      'nul.bin': sha256('a\0b'),
    })
  })

  it('can be opened with its relative name by code and by file_read, and can be changed', async () => {
    const { outputs } = await run(
      [
        python("open('in/a.txt', 'a').write('two\\n'); print(open('in/a.txt').read())"),
        readFile('in/a.txt'),
        python("import os; print(os.path.realpath('in/a.txt').startswith(os.getcwd()))"),
      ],
      { files: [{ name: 'in/a.txt', content: 'one\n' }] },
    )
    expect(outputs[0]).toContain('one\ntwo')
    expect(outputs[1]).toMatch(/one[\s\S]*two/)
    expect(outputs[2]).toContain('True')
  })

  it('is there before the first model call of a streamed run', async () => {
    provider.when('[streamed file]', { toolCalls: [HASH_ALL] }, { text: 'Done.' })
    const body = { instruction: '[streamed file]', tools: ALL_TOOLS, files: [{ name: 's.txt', content: 's' }] }
    const events = await (await server.stream('/v1beta/interactions:stream', body)).all()
    expect(events.find(({ event }) => event === 'tool_result')?.data.output).toContain(`s.txt ${sha256('s')}`)
  })

  it('can use the whole limit of inline files, counted in decoded bytes', async () => {
    const bytes = new Uint8Array(INLINE_BYTES).fill(255)
    expect(await hashesInside([{ name: 'full.bin', content: base64(bytes), encoding: 'base64' }])).toEqual({
      'full.bin': sha256(bytes),
    })
  })
})

async function refusedField(files: unknown, param: string): Promise<string> {
  const answer = await server.post('/v1beta/interactions', { instruction: 'hello', files })
  expect(answer.status, `${JSON.stringify(files).slice(0, 200)} ${answer.text}`).toBe(400)
  const error = errorOf(answer)
  expect(error, answer.text).toMatchObject({ code: 'invalid_request', param, retryable: false })
  expect(error.message).toContain(param)
  return error.message
}

describe('a file is refused if it', () => {
  it.each([
    ['that climbs out', '../x'],
    ['that is the parent', '..'],
    ['that climbs out from inside', 'a/../../x'],
    ['with a parent in the middle', 'a/../b'],
    ['that ends in the parent', 'a/..'],
    ['that is absolute', '/abs'],
    ['with a NUL', 'a\0b'],
    ['that is empty', ''],
    ['that is the directory itself', '.'],
    ['with an empty part', 'a//b'],
    ['that ends in a slash', 'a/'],
    ['with a backslash', 'a\\b'],
    ['that climbs out as on Windows', '..\\x'],
    ['that no file system takes', 'x'.repeat(256)],
    ['that is a number', 7],
    ['that is null', null],
  ])('has a name %s', async (_, name) => {
    await refusedField(
      [
        { name: 'good.txt', content: '' },
        { name, content: 'x' },
      ],
      'files[1].name',
    )
    await refusedField([{ name, data: base64('x') }], 'files[0].name')
  })

  it('has no name', async () => {
    await refusedField([{ content: 'x' }], 'files[0].name')
  })

  it('has the same name as another file', async () => {
    const same = { name: 'a/b.txt', content: 'x' }
    await refusedField([same, { name: 'c', content: '' }, same], 'files[2].name')
  })

  it('has a name that another file needs as a directory', async () => {
    const [file, below] = [
      { name: 'a', content: 'x' },
      { name: 'a/b', content: 'x' },
    ]
    await refusedField([file, below], 'files[1].name')
    await refusedField([below, file], 'files[1].name')
  })

  it.each([
    ['neither content nor url', {}],
    ['content and url', { content: 'x', url: 'https://example.com/x' }],
    ['data and url', { data: base64('x'), url: 'https://example.com/x' }],
    ['content and data', { content: 'x', data: base64('x') }],
  ])('has %s', async (_, sources) => {
    const answer = await server.post('/v1beta/interactions', { instruction: 'x', files: [{ name: 'x', ...sources }] })
    expect(answer.status, answer.text).toBe(400)
    const error = errorOf(answer)
    expect(error.code).toBe('invalid_request')
    expect(error.param).toMatch(/^files\[0\](\.(url|content|data))?$/)
  })

  it.each(['!!!!', 'YWJ', 'YW Jj', 'a===', 'YWJj=', 'ü'])('has content that is not base64: %j', async (content) => {
    await refusedField([{ name: 'x', content, encoding: 'base64' }], 'files[0].content')
    await refusedField([{ name: 'x', data: content }], 'files[0].data')
  })

  it('has an unknown encoding, or fields of the wrong type', async () => {
    await refusedField([{ name: 'x', content: 'x', encoding: 'latin1' }], 'files[0].encoding')
    await refusedField([{ name: 'x', content: 7 }], 'files[0].content')
    await refusedField([{ name: 'x', data: {} }], 'files[0].data')
    await refusedField([{ name: 'x', url: 7 }], 'files[0].url')
    await refusedField(['x'], 'files[0]')
    await refusedField({ name: 'x', content: 'x' }, 'files')
  })

  it('has an address that cannot be fetched', async () => {
    for (const url of ['http://example.com/x', 'ftp://example.com/x', 'file:///etc/passwd', 'nonsense', '']) {
      await refusedField([{ name: 'x', url }], 'files[0].url')
    }
  })

  it('comes from an object store that the operator did not configure', async () => {
    for (const url of ['s3://bucket/x', 'gs://bucket/x']) {
      expect(await refusedField([{ name: 'x', url }], 'files[0].url')).toContain('not configured')
    }
  })

  it('is one of more than 100', async () => {
    const files = Array.from({ length: 101 }, (_, i) => ({ name: `${i}.txt`, content: '' }))
    expect(await refusedField(files, 'files')).toContain('100')
    expect(Object.keys(await hashesInside(files.slice(1)))).toHaveLength(100)
  })

  it('exceeds the limit of all inline files together, with 413 and the limit', async () => {
    const half = new Uint8Array(INLINE_BYTES / 2)
    const files = [
      { name: 'a', content: base64(half), encoding: 'base64' },
      { name: 'b', data: base64(half) },
      { name: 'c', content: 'x' },
    ]
    const answer = await server.post('/v1beta/interactions', { instruction: 'x', files })
    expect(answer.status, answer.text).toBe(413)
    const error = errorOf(answer)
    expect(error).toMatchObject({ code: 'payload_too_large', retryable: false })
    expect(error.message).toMatch(/64 KiB|65,?536/)
    expect((await server.post('/v1beta/interactions:stream', { instruction: 'x', files })).status).toBe(413)
  })

  it('exceeds the limit in bytes, even if not in characters', async () => {
    const files = [{ name: 'a', content: 'ü'.repeat(INLINE_BYTES / 2 + 1) }]
    const answer: Answer = await server.post('/v1beta/interactions', { instruction: 'x', files })
    expect(answer.status, answer.text).toBe(413)
  })
})
