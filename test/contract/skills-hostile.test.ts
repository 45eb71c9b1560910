/** Checks malicious and broken zips: each is refused with a message and leaves no file behind. */
import { existsSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { skillText, type ZipEntry, zip } from '../support/zip.ts'

const SKILL_BYTES = 200_000
const SKILL_FILES = 20
const SKILL_VERSIONS = 4

let server: Server
beforeAll(async () => {
  const limits = { skillBytes: SKILL_BYTES, skillFiles: SKILL_FILES, skillVersions: SKILL_VERSIONS }
  server = await startServer({ config: { limits } })
})
afterAll(() => server.stop())

async function send(body: Uint8Array<ArrayBuffer>): Promise<Answer> {
  const response = await fetch(`${server.url}/v1beta/skills`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/zip' },
    body,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

/** Lists the directory of uploads, which must be empty after a refusal. */
const uploads = () => readdirSync(join(server.dataDir, 'skills-work/uploads'))

const md: ZipEntry = { name: 'x/SKILL.md', data: skillText('x') }
const with_ = (...more: ZipEntry[]) => zip([md, ...more])

const LINK = 0o120_777
const zeros = Buffer.alloc(SKILL_BYTES * 5)

const refused: readonly (readonly [what: string, zip: Buffer<ArrayBuffer>, told: RegExp])[] = [
  ['a name that leaves the folder', with_({ name: 'x/../../evil.txt', data: 'x' }), /has a part \. or \.\./],
  ['a name that begins with ..', with_({ name: '../evil.txt', data: 'x' }), /has a part \. or \.\./],
  ['a folder called ..', with_({ name: 'x/../', mode: 0o040_755 }), /has a part \. or \.\./],
  ['an absolute name', with_({ name: '/etc/cron.d/evil', data: 'x' }), /is absolute/],
  ['a drive', with_({ name: 'C:/evil.txt', data: 'x' }), /is absolute/],
  ['backslashes', with_({ name: 'x\\..\\..\\evil.txt', data: 'x' }), /has a backslash/],
  ['a NUL in a name', with_({ name: 'x/a\0.txt', data: 'x' }), /has a control character/],
  ['a line break in a name', with_({ name: 'x/a\nb', data: 'x' }), /has a control character/],
  ['a name that is written backwards', with_({ name: 'x/\u202egpj.exe', data: 'x' }), /has a control character/],
  ['an empty name', with_({ name: '', data: 'x' }), /is empty/],
  ['an empty part', with_({ name: 'x//a', data: 'x' }), /has an empty part/],
  ['a name of 300 characters', with_({ name: `x/${'a'.repeat(300)}`, data: 'x' }), /longer than 255 bytes/],
  ['a name 40 folders deep', with_({ name: `x/${'a/'.repeat(40)}b`, data: 'x' }), /nested deeper/],
  ['a name that is not UTF-8', with_({ name: Buffer.from([0x78, 0x2f, 0xff, 0xfe]), data: 'x' }), /not UTF-8/],
  ['a symbolic link', with_({ name: 'x/link', data: '/etc/passwd', mode: LINK }), /symbolic link/],
  ['a symbolic link to a folder', with_({ name: 'x/out/', data: '', mode: LINK }), /symbolic link/],
  ['SKILL.md as a link', zip([{ ...md, data: '/etc/passwd', mode: LINK }]), /symbolic link/],
  ['a device', with_({ name: 'x/null', mode: 0o020_666 }), /neither a file nor a folder/],
  ['a FIFO', with_({ name: 'x/pipe', mode: 0o010_666 }), /neither a file nor a folder/],
  ['a socket', with_({ name: 'x/socket', mode: 0o140_666 }), /neither a file nor a folder/],
  ['one name twice', with_({ name: 'x/a', data: '1' }, { name: 'x/a', data: '2' }), /occurs twice/],
  ['two SKILL.md', with_(md), /occurs twice/],
  ['names that differ in case', with_({ name: 'x/A.txt', data: '1' }, { name: 'x/a.TXT', data: '2' }), /only in case/],
  ['names that differ in their accents’ form', with_({ name: 'x/\u00e9' }, { name: 'x/e\u0301' }), /only in case/],
  [
    'a file that is a folder too',
    with_({ name: 'x/a', data: '1' }, { name: 'x/a/b', data: '2' }),
    /a file and a folder/,
  ],
  ['an encrypted entry', with_({ name: 'x/a', data: 'x', flags: 0x801 }), /encrypted/],
  ['strong encryption', with_({ name: 'x/a', data: 'x', flags: 0x841 }), /encrypt/],
  ['an unknown compression', with_({ name: 'x/a', data: 'x', method: 12 }), /compression \(12\)/],
  ['a folder with content', with_({ name: 'x/a/', data: 'x' }), /folder with content/],
  [
    'a size that is less than the content',
    with_({ name: 'x/a', data: 'x'.repeat(999), size: 9 }),
    /can't be read|damaged/,
  ],
  ['a size that is more than the content', with_({ name: 'x/a', data: 'x', size: 99 }), /can't be read|damaged/],
  ['a wrong checksum', with_({ name: 'x/a', data: 'x', crc: 1 }), /damaged/],
  [
    'content that is no deflate',
    with_({ name: 'x/a', data: zeros.subarray(0, 50), method: 8, compressedSize: 3 }),
    /can't be read/,
  ],
  ['two entries on one place', with_({ name: 'x/a', data: 'x', offset: 0 }), /overlap/],
  ['an entry beyond the end', with_({ name: 'x/a', data: 'x', offset: 99_999 }), /can't be read/],
  ['fewer entries than it counts', zip([md], { count: 60_000 }), /can't be read/],
  [
    '64-bit sizes beyond all bounds',
    with_({ name: 'x/a', data: 'x', size: 0xffff_ffff, extra: zip64(2n ** 62n) }),
    /unpacks to more|can't be read/,
  ],
]

function zip64(size: bigint): Buffer {
  const extra = Buffer.alloc(12)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(8, 2)
  extra.writeBigUInt64LE(size, 4)
  return extra
}

it.each(refused)('refuses %s', async (_what, body, told) => {
  const error = errorOf(await send(body))
  expect(error.message).toMatch(told)
  expect(error.param).toBe('file')
  expect([400, 413]).toContain(error.status)
  expect(uploads()).toEqual([])
  expect(existsSync(join(server.dataDir, 'evil.txt'))).toBe(false)
  expect((await server.get('/v1beta/skills')).body.skills).toEqual([])
})

it.each([
  ['a bomb that says what it is', with_({ name: 'x/zeros', data: zeros })],
  [
    'a bomb of many files',
    with_(...Array.from({ length: 10 }, (_e, i) => ({ name: `x/${i}`, data: zeros.subarray(0, 50_000) }))),
  ],
  ['more files than allowed', with_(...Array.from({ length: SKILL_FILES }, (_e, i) => ({ name: `x/${i}` })))],
  ['more entries than any skill has', with_(...Array.from({ length: 500 }, (_e, i) => ({ name: `x/${i}/` })))],
  ['a zip that is too large itself', with_({ name: 'x/a', data: Buffer.from(noise(SKILL_BYTES + 1)), method: 0 })],
])('refuses %s with 413', async (_what, body) => {
  expect(errorOf(await send(body))).toMatchObject({ status: 413, code: 'payload_too_large' })
  expect(uploads()).toEqual([])
})

it('reads a body without a declared length no further than the limit', async () => {
  let sent = 0
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 10_000
      controller.enqueue(Buffer.alloc(10_000, 'PK'))
    },
  })
  const request = fetch(`${server.url}/v1beta/skills`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/zip' },
    body: endless,
    duplex: 'half',
  })
  // The answer arrives while the body is still being sent; a client may see the connection close first.
  const status = await request.then(
    ({ status: answered }) => answered,
    () => 413,
  )
  expect(status).toBe(413)
  expect(sent).toBeLessThan(50_000_000)
  await vi.waitFor(() => expect(uploads()).toEqual([]), { timeout: 30_000 })
})

it('leaves nothing of an upload whose sender disconnects', async () => {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  const head = `POST /v1beta/skills HTTP/1.1\r\nHost: x\r\nx-svc-api-key: ${server.key}\r\n`
  socket.write(`${head}Content-Type: application/zip\r\nContent-Length: 100000\r\n\r\n${'P'.repeat(50_000)}`)
  await vi.waitFor(() => expect(uploads()).toHaveLength(1), { timeout: 30_000 })
  socket.destroy()
  await vi.waitFor(() => expect(uploads()).toEqual([]), { timeout: 30_000 })
})

it('stops a zip bomb with a false size at the declared size', async () => {
  const packed = deflateRawSync(zeros)
  const body = with_({ name: 'x/zeros', data: packed, method: 0 })
  // Stored bytes that are declared as deflated: method 8 and a size of 100 bytes in both headers.
  for (const signature of ['PK\x03\x04', 'PK\x01\x02']) {
    const at = body.indexOf(Buffer.from(signature, 'latin1'), body.indexOf('x/SKILL.md') + 20)
    const fields = at + (signature === 'PK\x03\x04' ? 4 : 6)
    body.writeUInt16LE(8, fields + 4)
    body.writeUInt32LE(100, fields + 18)
  }
  const error = errorOf(await send(body))
  expect(error.status).toBe(400)
  expect(uploads()).toEqual([])
})

it('refuses or accepts every truncated or altered zip without a server failure', async () => {
  const good = with_({ name: 'x/a.txt', data: 'some text' })
  const damaged: Buffer<ArrayBuffer>[] = []
  for (let i = 1; i < good.length; i += 7) damaged.push(Buffer.from(good.subarray(0, i)))
  for (let i = 0; i < good.length; i += 5) {
    const copy = Buffer.from(good)
    copy[i]! ^= 0xff
    damaged.push(copy)
  }
  for (const body of damaged) {
    const answer = await send(body)
    expect([200, 400, 409, 413], answer.text).toContain(answer.status)
    if (answer.status === 200) await server.request('DELETE', `/v1beta/skills/${answer.body.name}`)
  }
  expect(uploads()).toEqual([])
  expect((await server.get('/healthz')).status).toBe(200)
})

it('ignores metadata files that zip programs add', async () => {
  const { status, body, text } = await send(
    zip([
      { name: 'x/', mode: 0o040_755 },
      md,
      { name: '__MACOSX/x/._SKILL.md', data: 'litter' },
      { name: 'x/.DS_Store', data: 'litter' },
      { name: 'x/scripts/__pycache__/a.pyc', data: 'litter' },
      { name: 'x/scripts/a.py', data: 'print(1)', mode: 0o104_755 },
    ]),
  )
  expect(status, text).toBe(200)
  const { body: read } = await server.get(`/v1beta/skills/${body.name}`)
  expect(read.files.map(({ path }: { path: string }) => path)).toEqual(['SKILL.md', 'scripts/a.py'])
})

it('refuses a skill over the project’s limit of versions and says to delete some', async () => {
  for (let i = 0; i < SKILL_VERSIONS; i++) await send(zip([{ name: 'SKILL.md', data: skillText(`many-${i}`) }]))
  const full = errorOf(await send(zip([{ name: 'SKILL.md', data: skillText('one-more') }])))
  expect(full).toMatchObject({ status: 409, code: 'conflict' })
  expect(full.message).toMatch(/Delete some first/)
  await server.request('DELETE', '/v1beta/skills/many-1')
  expect((await send(zip([{ name: 'SKILL.md', data: skillText('one-more') }]))).status).toBe(200)
})

function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let i = 0, state = 1; i < length; i++) {
    state = (state * 48_271) % 2_147_483_647
    bytes[i] = state
  }
  return bytes
}
