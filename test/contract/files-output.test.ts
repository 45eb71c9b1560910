/** Checks the output files of a run: which are collected, how they are described, and who can download them. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { ALL_TOOLS, bash, python, scripted, toolRunner, writeFile } from '../support/tool-run.ts'

const MIB = 1024 * 1024
const OUTPUT_FILES_BYTES = 8 * MIB

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  const limits = {
    interactionsPerMinute: 1_000_000,
    callsPerMinute: 1_000_000,
    outputFilesBytes: OUTPUT_FILES_BYTES,
  }
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

interface OutputFile {
  readonly name: string
  readonly url: string
  readonly size: number
  readonly mimeType: string
  readonly sha256: string
}

/** Runs this Python code in the working directory, which contains `outputs/`. */
async function outputsOf(code: string): Promise<{ id: string; files: OutputFile[]; warnings: { message: string }[] }> {
  const { answer, body } = await run([python(`import os\nos.makedirs('outputs', exist_ok=True)\n${code}`)])
  expect(answer.status, answer.text).toBe(200)
  expect(body.status, answer.text).toBe('completed')
  return { id: body.interactionId, files: body.files, warnings: body.warnings }
}

const writing = (files: Readonly<Record<string, string>>) =>
  `import json
for name, content in json.loads(${JSON.stringify(JSON.stringify(files))}).items():
    os.makedirs(os.path.dirname(os.path.join('outputs', name)), exist_ok=True)
    open(os.path.join('outputs', name), 'w').write(content)`

/** Downloads without a key: the signature in the address is enough. */
async function download(url: string) {
  const response = await fetch(url)
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

async function expectDownload(file: OutputFile, content: string | Uint8Array): Promise<Headers> {
  const { status, headers, bytes } = await download(file.url)
  expect(status, `${file.name} ${bytes.subarray(0, 300)}`).toBe(200)
  expect(sha256(bytes), file.name).toBe(sha256(content))
  return headers
}

describe('output files', () => {
  it('are all files under outputs/, also nested, with name, size, mimeType and sha256', async () => {
    const contents = {
      'report.txt': 'a report\n',
      'data.json': '{}',
      'table.csv': 'a,b\n1,2\n',
      'page.html': '<p>',
      'chart.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
      'deep/er/still/ü.md': '# deep',
      'empty.bin': '',
      '.hidden': 'hidden',
      'no-ending': 'none',
    }
    const { id, files } = await outputsOf(`${writing(contents)}\nopen('beside.txt', 'w').write('not an output')`)
    const strip = (name: string) => name.replace(/^outputs\//, '')
    expect(files.map(({ name }) => strip(name)).sort()).toEqual(Object.keys(contents).sort())
    for (const file of files) {
      const content = contents[strip(file.name) as keyof typeof contents]
      expect(Object.keys(file).sort()).toEqual(['mimeType', 'name', 'sha256', 'size', 'url'])
      expect(file).toMatchObject({ size: Buffer.byteLength(content), sha256: sha256(content) })
      await expectDownload(file, content)
    }
    const types = Object.fromEntries(files.map(({ name, mimeType }) => [strip(name), mimeType.split(';')[0]]))
    expect(types).toMatchObject({
      'report.txt': 'text/plain',
      'data.json': 'application/json',
      'table.csv': 'text/csv',
      'page.html': 'text/html',
      'chart.svg': 'image/svg+xml',
    })
    for (const type of Object.values(types)) expect(type).toMatch(/^\w+\/[\w.+-]+$/)
    const got = await server.get(`/v1beta/interactions/${id}`)
    const unsigned = (list: OutputFile[]) => list.map(({ url, ...rest }) => rest)
    expect(unsigned(got.body.files)).toEqual(unsigned(files))
  })

  it('are an empty list if nothing was written, or only empty directories', async () => {
    expect((await outputsOf('')).files).toEqual([])
    expect((await outputsOf("os.makedirs('outputs/a/b')")).files).toEqual([])
    const { body } = await run([])
    expect(body.files).toEqual([])
  })

  it('are limited by the length of their names; a warning names those that were omitted', async () => {
    const { id, files, warnings } = await outputsOf(
      `import json
os.makedirs('outputs/' + 'd' * 200)
for i in range(1000): open('outputs/' + 'd' * 200 + '/f%04d' % i + 'x' * 100, 'w').close()
os.chdir('outputs')
for _ in range(6): os.mkdir('a' * 200); os.chdir('a' * 200)
open('deep', 'w').close()`,
    )
    const names = 128 * 1024
    const each = 200 + '/f0000'.length + 100
    expect(files).toHaveLength(Math.floor(names / each))
    const messages = warnings.map(({ message }) => message)
    expect(messages.join('\n')).toContain(`/f${String(files.length).padStart(4, '0')}x`)
    expect(messages.join('\n')).toContain('131072 bytes of names is the most')
    expect(messages.join('\n')).toContain(`has a name of ${6 * 201 + 'deep'.length} bytes, and 1024 is the most`)
    expect((await server.get(`/v1beta/interactions/${id}`)).text.length).toBeLessThan(MIB)
    await expectDownload(files.at(-1)!, '')
  })

  it('can be written by file_write and by every language', async () => {
    const { body } = await run([
      writeFile('outputs/written.txt', 'written'),
      bash('mkdir -p outputs && echo shell > outputs/shell.txt'),
    ])
    const names = body.files.map(({ name }: OutputFile) => name.replace(/^outputs\//, ''))
    expect(names.sort()).toEqual(['shell.txt', 'written.txt'])
  })

  it('are collected before `completed` is sent', async () => {
    const instruction = scripted(provider, [writeFile('outputs/a.txt', 'a')])
    const stream = await server.stream('/v1beta/interactions:stream', { instruction, tools: ALL_TOOLS })
    for await (const { event, data } of stream.events) {
      if (event !== 'completed') continue
      const { body } = await server.get(`/v1beta/interactions/${data.interactionId}`)
      expect(body.files).toHaveLength(1)
      await expectDownload(body.files[0], 'a')
    }
    expect.assertions(3)
  })

  it('are returned byte for byte: one mebibyte with all byte values', async () => {
    const { files } = await outputsOf(
      `open('outputs/big.bin', 'wb').write(bytes((i * 31 + (i >> 8)) % 256 for i in range(${MIB})))`,
    )
    const bytes = Uint8Array.from({ length: MIB }, (_, i) => (i * 31 + (i >> 8)) % 256)
    expect(files[0]).toMatchObject({ size: MIB, sha256: sha256(bytes) })
    const headers = await expectDownload(files[0]!, bytes)
    expect(headers.get('content-length')).toBe(String(MIB))
  })

  it('that are still being written are stored as they were read, and their description matches', async () => {
    const { answer, body } = await run([
      bash('mkdir -p outputs && (while true; do echo more >> outputs/log.txt; done) & sleep 0.2; ls outputs'),
    ])
    expect(answer.status, answer.text).toBe(200)
    const [file] = body.files
    const { bytes, headers } = await download(file.url)
    expect(bytes.length).toBe(file.size)
    expect(headers.get('content-length')).toBe(String(file.size))
    expect(sha256(bytes)).toBe(file.sha256)
    expect(bytes.toString('utf8', 0, 10)).toBe('more\nmore\n')
  })

  it('can be several hundred', async () => {
    const { files } = await outputsOf("for i in range(300): open(f'outputs/{i}.txt', 'w').write(str(i))")
    expect(files).toHaveLength(300)
    for (const file of files.filter((_, i) => i % 100 === 0)) {
      await expectDownload(file, /(\d+)\.txt$/.exec(file.name)![1]!)
    }
  })

  it('over the size limit are omitted with a warning, and the run completes', async () => {
    const { files, warnings } = await outputsOf(
      `open('outputs/a.txt', 'w').write('small')\nopen('outputs/sparse.bin', 'w').truncate(${10 * 1024 * MIB})`,
    )
    expect(files.map(({ name }) => name.replace(/^outputs\//, ''))).toEqual(['a.txt'])
    expect(warnings.map(({ message }) => message).join('\n')).toMatch(/sparse\.bin.*(8,?388,?608|8 MiB)/)
  })

  it.each([
    ['behind thousands of directories', "for i in range(5000): os.mkdir(f'outputs/a{i}')", 'z.txt'],
    ['behind thousands of links', "for i in range(5000): os.symlink('x', f'outputs/a{i}')", 'z.txt'],
    [
      'deep down',
      "os.chdir('outputs')\nfor i in range(600): os.mkdir('d'); os.chdir('d')\nopen('z.txt', 'w').write('z')\nos.chdir('/workspace')",
      `${'d/'.repeat(600)}z.txt`,
    ],
    [
      'in a directory that is closed',
      "os.mkdir('outputs/d'); open('outputs/d/z.txt', 'w').write('z'); os.chmod('outputs/d', 0)",
      'd/z.txt',
    ],
  ])('are collected or named in a warning, never lost silently: a file %s', async (_, code, name) => {
    const { files, warnings } = await outputsOf(`${code}\n${name === 'z.txt' ? writing({ 'z.txt': 'z' }) : ''}`)
    const collected = files.some((file) => file.name.replace(/^outputs\//, '') === name)
    const told = warnings.some(({ message }) => !message.includes('is no regular file'))
    expect({ collected, told }).not.toEqual({ collected: false, told: false })
  })

  it('do not include links, pipes or sockets, and links are not followed', async () => {
    const { files } = await outputsOf(`
import socket
os.symlink('/etc/passwd', 'outputs/passwd.txt')
os.symlink('/etc', 'outputs/etc')
os.symlink('/proc/1/environ', 'outputs/environ')
os.symlink('../secret.txt', 'outputs/inside.txt')
os.symlink('nowhere', 'outputs/dangling')
os.symlink('.', 'outputs/loop')
open('secret.txt', 'w').write('not an output')
os.mkfifo('outputs/pipe')
socket.socket(socket.AF_UNIX).bind('outputs/socket')
os.makedirs('outputs/real')
open('outputs/real/file.txt', 'w').write('real')
`)
    expect(files.map(({ name }) => name.replace(/^outputs\//, ''))).toEqual(['real/file.txt'])
    await expectDownload(files[0]!, 'real')
  })

  it('are none if outputs/ is a link out of the working directory', async () => {
    const { body, outputs } = await run([bash('rm -rf outputs && ln -s /etc outputs && echo linked')])
    expect(outputs[0]).toContain('linked')
    expect(body).toMatchObject({ status: 'completed', files: [] })
  })

  it('are none if outputs/ is a file, a pipe, or a link to itself', async () => {
    for (const code of ['echo x > outputs', 'ln -s outputs outputs', 'mkfifo outputs', 'true']) {
      const { answer, body } = await run([bash(`rm -rf outputs && ${code}`)])
      expect(body, `${code} ${answer.text}`).toMatchObject({ status: 'completed', files: [] })
    }
  })

  it('can have unusual names, and are returned with them', async () => {
    const contents = Object.fromEntries(
      [
        'with space.txt',
        'ünï — 文字 🦊.txt',
        'quo"te\'s.txt',
        'new\nline.txt',
        'line\r\nSet-Cookie: a=b.txt',
        'per%20cent%2F.txt',
        'back\\slash.txt',
        'hash#query?a=b&c.txt',
        'semi;colon,comma.txt',
        '..dots..',
        '...',
        '-dash',
        'tab\t\u0001\u007f.txt',
        'x'.repeat(255),
        'de ep/ü ü/a+b=c.txt',
      ].map((name, i) => [name, `content ${i}`]),
    )
    const { files } = await outputsOf(writing(contents))
    expect(files.map(({ name }) => name.replace(/^outputs\//, '')).sort()).toEqual(Object.keys(contents).sort())
    for (const file of files) {
      const headers = await expectDownload(file, contents[file.name.replace(/^outputs\//, '')]!)
      expect(headers.get('content-disposition')).toMatch(/^attachment/)
      expect(headers.get('set-cookie')).toBeNull()
    }
  })

  it('with a name that is not valid UTF-8 do not break the run, and are listed or named in a warning', async () => {
    const { files, warnings } = await outputsOf(
      `${writing({ 'a.txt': 'a' })}\nopen(b'outputs/\\xff\\xfe.txt', 'w').write('raw')`,
    )
    expect(files.map(({ name }) => name.replace(/^outputs\//, ''))).toContain('a.txt')
    for (const { url } of files) expect((await download(url)).status).toBe(200)
    if (files.length === 2) return
    expect(warnings).toHaveLength(1)
    expect(warnings[0]!.message).toMatch(/name/)
    expect(warnings[0]!.message).not.toContain('no regular file')
  })

  it.each([
    ['the model broke down', { fault: 'status:400' as const }, 500, 'model_error'],
    [
      'the time was up',
      { toolCalls: [{ name: 'code_execution', args: { code: 'while True: pass' } }] },
      504,
      'deadline_exceeded',
    ],
  ])('of a run that failed because %s can still be downloaded', async (why, second, status, code) => {
    provider.when(`[${why}]`, { toolCalls: [writeFile('outputs/partial.txt', 'partial')] }, second)
    const body = { instruction: `[${why}]`, tools: ALL_TOOLS, policy: { maxTurnDuration: 3 } }
    const answer = await server.post('/v1beta/interactions', body)
    expect(answer.status, answer.text).toBe(status)
    expect(answer.body.error).toMatchObject({ code, interactionId: expect.any(String) })
    const got = await server.get(`/v1beta/interactions/${answer.body.error.interactionId}`)
    expect(got.body.status).toBe('failed')
    expect(got.body.files, got.text).toHaveLength(1)
    await expectDownload(got.body.files[0], 'partial')
  })
})

describe('the signed address of an output file', () => {
  async function oneFile(content = 'secret content') {
    const { id, files } = await outputsOf(writing({ 'deep/a.txt': content }))
    return { id, url: files[0]!.url }
  }

  it('needs no key, is absolute, and is signed again at each GET', async () => {
    const { id, url } = await oneFile()
    expect(url.startsWith(`${server.url}/`)).toBe(true)
    let later = url
    while (later === url) later = (await server.get(`/v1beta/interactions/${id}`)).body.files[0].url
    for (const each of [url, later]) expect((await download(each)).status).toBe(200)
  })

  it('is refused if any of its characters is changed', async () => {
    const { url } = await oneFile()
    const at = url.indexOf('/', 'https://'.length)
    const accepted: string[] = []
    const tried: Promise<void>[] = []
    async function refuse(changed: string) {
      const { status, bytes } = await download(changed)
      const leaked = bytes.includes('secret content')
      if (status < 400 || status >= 500 || leaked) accepted.push(`${status} ${changed}`)
    }
    for (let i = at + 1; i < url.length; i++) {
      const char = url[i]!
      if (/[/?&=%]/.test(char)) continue
      const others = i === url.length - 1 ? BASE64_URL : [BASE64_URL[(BASE64_URL.indexOf(char) + 1) % 64]!]
      for (const other of others) if (other !== char) tried.push(refuse(url.slice(0, i) + other + url.slice(i + 1)))
      if (tried.length % 16 === 0) await Promise.all(tried)
    }
    await Promise.all(tried)
    expect(tried.length).toBeGreaterThan(150)
    expect(accepted).toEqual([])
  })

  it('is refused with a missing, changed or repeated signature or expiry time', async () => {
    const { url } = await oneFile()
    const changes: ((query: URLSearchParams) => void)[] = [
      (query) => query.delete('signature'),
      (query) => query.delete('expires'),
      (query) => query.set('signature', ''),
      (query) => query.set('signature', query.get('signature')!.slice(0, -1)),
      (query) => query.set('signature', `${query.get('signature')}A`),
      (query) => query.set('signature', `${query.get('signature')}=`),
      (query) => query.append('signature', query.get('signature')!),
      (query) => query.set('expires', String(Number(query.get('expires')) + 3600)),
      (query) => query.set('expires', `0${query.get('expires')}`),
      (query) => query.set('expires', `${query.get('expires')}.0`),
      (query) => query.set('expires', '9'.repeat(30)),
      (query) => query.append('expires', '9999999999'),
    ]
    for (const change of changes) {
      const changed = new URL(url)
      change(changed.searchParams)
      const { status, bytes } = await download(changed.href)
      expect(status, changed.href).toBeGreaterThanOrEqual(400)
      expect(status, changed.href).toBeLessThan(500)
      expect(bytes.toString()).not.toContain('secret content')
    }
  })

  it('contains its expiry time, which is within a week', async () => {
    const { url } = await oneFile()
    const expires = Number(new URL(url).searchParams.get('expires')) * 1000
    expect(expires).toBeGreaterThan(Date.now())
    expect(expires).toBeLessThan(Date.now() + 7 * 24 * 3600 * 1000)
  })

  it('is not valid for a file of the same name in another interaction', async () => {
    const [mine, other] = [await oneFile('mine'), await oneFile('other')]
    expect(mine.url).toContain(mine.id)
    const { status, bytes } = await download(mine.url.replace(mine.id, other.id))
    expect([403, 404]).toContain(status)
    expect(bytes.toString()).not.toContain('other')
  })

  it('returns 404 after the interaction is deleted', async () => {
    const { id, url } = await oneFile()
    expect((await download(url)).status).toBe(200)
    expect((await server.request('DELETE', `/v1beta/interactions/${id}`)).status).toBe(200)
    expect((await download(url)).status).toBe(404)
  })

  it('refuses with the common error body', async () => {
    const { url } = await oneFile()
    const response = await fetch(url.replace(/signature=./, 'signature=~'))
    const body = (await response.json()) as { error: { status: number }; requestId: string }
    expect(Object.keys(body).sort()).toEqual(['error', 'requestId'])
    expect(body.error.status).toBe(response.status)
    expect(response.headers.get('x-request-id')).toBe(body.requestId)
  })

  it('never lets a browser run a file as a page of this server', async () => {
    const hostile = {
      'x.html': '<script>alert(document.domain)</script>',
      'x.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      'x.xhtml': '<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>',
      'x.xml': '<?xml version="1.0"?><a/>',
      'x.js': 'alert(1)',
      'x.txt': '<script>alert(1)</script>',
      'x.mht': 'x',
    }
    const { files } = await outputsOf(writing(hostile))
    expect(files).toHaveLength(Object.keys(hostile).length)
    for (const file of files) {
      const headers = await expectDownload(file, hostile[file.name.replace(/^outputs\//, '') as keyof typeof hostile])
      expect(headers.get('content-disposition'), file.name).toMatch(/^attachment\b/)
      expect(headers.get('x-content-type-options'), file.name).toBe('nosniff')
      expect(headers.get('content-security-policy'), file.name).toMatch(/sandbox/)
      expect(headers.get('content-security-policy'), file.name).toMatch(/default-src 'none'/)
      expect(headers.get('content-security-policy'), file.name).not.toMatch(/allow-scripts|unsafe/)
    }
  })
})

const BASE64_URL = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
