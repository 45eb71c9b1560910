/** Checks credentials: they are written over HTTP, and no answer, log or stored file ever contains their secret. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'

const SECRET = 'planted-s3cr3t-0f4a91c7'
const CREDENTIALS = '/v1beta/credentials'

let server: Server
const answers: Answer[] = []
beforeAll(async () => {
  server = await startServer({})
})
afterAll(() => server?.stop())

async function call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
  const answer = await server.request(method, path, body, headers)
  answers.push(answer)
  return answer
}

const bearer = (extra: object = {}) => ({ type: 'bearer', token: SECRET, ...extra })

describe('a credential', () => {
  it('is returned without its secret, with the chosen id or a generated one', async () => {
    const chosen = await call(
      'POST',
      CREDENTIALS,
      bearer({ id: 'tracker', name: 'Tracker', allowedHosts: ['a.example'] }),
    )
    expect(chosen.status).toBe(200)
    expect(chosen.headers.get('location')).toBe(`${CREDENTIALS}/tracker`)
    expect(chosen.body).toEqual({
      id: 'tracker',
      name: 'Tracker',
      type: 'bearer',
      allowedHosts: ['a.example'],
      createTime: expect.any(String),
      updateTime: expect.any(String),
    })
    expect((await call('GET', `${CREDENTIALS}/tracker`)).body).toEqual(chosen.body)
    expect((await call('POST', CREDENTIALS, bearer())).body.id).toMatch(/^crd_\w{22}$/)
    const taken = await call('POST', CREDENTIALS, bearer({ id: 'tracker' }))
    expect(errorOf(taken)).toMatchObject({ code: 'conflict', param: 'id' })
  })

  it.each([
    ['bearer', { token: SECRET }],
    ['headers', { headers: { 'X-Api-Key': SECRET, Authorization: `Token ${SECRET}` } }],
    ['basic', { username: 'ada', password: SECRET }],
    [
      'oauth2',
      { refreshToken: SECRET, clientId: 'errand', tokenUrl: 'https://id.example.com/token', scopes: ['read'] },
    ],
    ['oauth2', { clientId: 'errand', clientSecret: SECRET }],
    ['oauth2', { accessToken: SECRET }],
  ])('of type %s is accepted', async (type, fields) => {
    const { status, body } = await call('POST', CREDENTIALS, { type, ...fields })
    expect(status).toBe(200)
    expect(body.type).toBe(type)
  })

  it.each([
    [{ token: SECRET }, 'type'],
    [{ type: 'magic', token: SECRET }, 'type'],
    [{ type: 'bearer' }, 'token'],
    [{ type: 'bearer', token: `${SECRET}\r\nX-Evil: 1` }, 'token'],
    [{ type: 'bearer', token: SECRET, password: SECRET }, 'password'],
    [{ type: 'basic', username: 'a:b', password: SECRET }, 'username'],
    [{ type: 'headers', headers: { Host: SECRET } }, 'headers.Host'],
    [{ type: 'headers', headers: { 'X-A': `${SECRET}\n` } }, 'headers.X-A'],
    [{ type: 'headers', headers: { 'X A': SECRET } }, 'headers.X A'],
    [{ type: 'oauth2', clientId: SECRET }, 'refreshToken'],
    [{ type: 'oauth2', clientId: 'errand', privateKey: SECRET }, 'privateKey'],
    [{ type: 'oauth2', refreshToken: SECRET, tokenUrl: 'file:///etc/passwd' }, 'tokenUrl'],
    [{ type: 'oauth2', refreshToken: SECRET, tokenUrl: `https://u:${SECRET}@id.example.com/` }, 'tokenUrl'],
    [bearer({ allowedHosts: ['https://a.example/'] }), 'allowedHosts[0]'],
    [bearer({ allowedHosts: [] }), 'allowedHosts'],
    [bearer({ name: 'a\0b' }), 'name'],
    [bearer({ id: 'No Slug' }), 'id'],
  ])('%j is refused with the field’s name and without the secret', async (body, param) => {
    expect(errorOf(await call('POST', CREDENTIALS, body))).toMatchObject({
      code: 'invalid_request',
      status: 400,
      param,
    })
  })

  it('is rotated and changed field by field', async () => {
    await call('POST', CREDENTIALS, {
      id: 'rotated',
      type: 'oauth2',
      refreshToken: 'old',
      clientId: 'errand',
      name: 'Old',
    })
    const path = `${CREDENTIALS}/rotated`
    const patched = await call('PATCH', path, { refreshToken: SECRET, name: null, allowedHosts: ['*.example.com'] })
    expect(patched.status).toBe(200)
    expect(patched.body).toMatchObject({ type: 'oauth2', allowedHosts: ['*.example.com'] })
    expect(patched.body).not.toHaveProperty('name')
    expect(errorOf(await call('PATCH', path, { token: SECRET })).param).toBe('token')
    expect(errorOf(await call('PATCH', path, { type: 'bearer' })).param).toBe('token')
    expect((await call('PATCH', path, bearer())).body.type).toBe('bearer')
    expect((await call('PATCH', path, { surprise: 1 })).body.warnings).toMatchObject([{ param: 'surprise' }])
  })

  it('is listed page by page, and returns 404 after it is deleted', async () => {
    const seen: string[] = []
    for (let token: string | undefined = '', pages = 0; token !== undefined && pages < 50; pages++) {
      const query = new URLSearchParams({ pageSize: '2', order: 'asc', ...(token && { pageToken: token }) })
      const { body } = await call('GET', `${CREDENTIALS}?${query}`)
      expect(body.credentials.length).toBeLessThanOrEqual(2)
      seen.push(...body.credentials.map(({ id }: { id: string }) => id))
      token = body.nextPageToken
    }
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toContain('tracker')
    expect(errorOf(await call('GET', `${CREDENTIALS}?pageToken=nonsense`)).param).toBe('pageToken')
    await call('POST', CREDENTIALS, bearer({ id: 'short-lived' }))
    expect((await call('DELETE', `${CREDENTIALS}/short-lived`)).status).toBe(200)
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const again = await call(method, `${CREDENTIALS}/short-lived`, method === 'PATCH' ? {} : undefined)
      expect(errorOf(again).code).toBe('not_found')
    }
  })

  it('of another project returns the same answer as one that does not exist', async () => {
    const other = { 'x-svc-api-key': await server.createKey('other') }
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const body = method === 'PATCH' ? bearer() : undefined
      const theirs = await call(method, `${CREDENTIALS}/tracker`, body, other)
      const nobodys = await call(method, `${CREDENTIALS}/nobodys`, body, other)
      expect(theirs.status).toBe(404)
      expect(theirs.text.replaceAll('tracker', 'nobodys').replaceAll(/req_\w+/g, '')).toBe(
        nobodys.text.replaceAll(/req_\w+/g, ''),
      )
    }
    expect((await call('GET', CREDENTIALS, undefined, other)).body.credentials).toEqual([])
    expect((await call('POST', CREDENTIALS, bearer({ id: 'tracker' }), other)).status).toBe(200)
    expect((await call('GET', `${CREDENTIALS}/tracker`)).status).toBe(200)
  })

  it('leaves its secret in no answer, no log line, and no file of the server', async () => {
    await server.stop('SIGKILL')
    for (const { text } of answers) expect(text).not.toContain(SECRET)
    expect(server.output()).not.toContain(SECRET)
    const files = readdirSync(server.dataDir, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    const contents = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    const stored = await server.stored.text()
    expect(stored).toContain('bearer')
    for (const content of [...contents, stored]) {
      expect(content).not.toContain(SECRET)
      expect(content).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 24))
    }
  })
})
