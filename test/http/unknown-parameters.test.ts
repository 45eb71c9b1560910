/** Unknown query parameters are ignored, and named in a response header and in the `warnings` of the body. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVERYTHING } from '../support/openapi.ts'
import { type Edge, openEdge } from './edge.ts'

const HEADER = 'x-errand-warning'
const PAGESIZE = 'unknown_parameter;param="pagesize"'

let edge: Edge
beforeAll(async () => {
  edge = await openEdge()
})
afterAll(() => edge.close())

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly in: string; readonly name: string }[]
}

test('every documented call names an unknown parameter in the header, and no documented one', async () => {
  const { paths } = (await edge.call('GET', EVERYTHING)).body
  let calls = 0
  for (const [path, operations] of Object.entries<Record<string, Operation>>(paths)) {
    // These calls refuse the request (no session, or another site) before its route is known, so they name no
    // parameter.
    if (/^\/console\/(api|auth)\//.test(path)) continue
    for (const [method, { operationId, parameters = [] }] of Object.entries(operations)) {
      const own = parameters.filter((parameter) => parameter.in === 'query')
      const query = new URLSearchParams(own.map(({ name }): [string, string] => [name.replace('<key>', 'team'), '1']))
      const url = path.replace('{version}', '1').replace(/\{\w+\}/g, 'x')
      const upload = operationId === 'uploadSkill'
      const body = upload ? 'PK' : ['post', 'patch'].includes(method) ? {} : undefined
      const headers: Record<string, string> = upload ? { 'content-type': 'application/zip' } : {}
      const right = await edge.call(method.toUpperCase(), `${url}?${query}`, body, headers)
      expect(right.headers[HEADER], operationId).toBeUndefined()
      query.append('pagesize', '5')
      const wrong = await edge.call(method.toUpperCase(), `${url}?${query}`, body, headers)
      expect(wrong.status, operationId).toBe(right.status)
      expect(wrong.headers[HEADER], operationId).toBe(PAGESIZE)
      calls++
    }
  }
  expect(calls).toBeGreaterThan(35)
})

test('runs, agents and credentials also have the warning in `warnings`; only runs store it', async () => {
  const warning = { code: 'unknown_parameter', param: 'veiw', message: expect.stringContaining('`veiw`') }
  const agent = await edge.call('POST', '/v1beta/agents?veiw=short', { unheardOf: 1 })
  expect(agent.body.warnings).toMatchObject([warning, { code: 'unknown_field', param: 'unheardOf' }])
  expect((await edge.call('PATCH', `/v1beta/agents/${agent.body.id}?veiw=short`, {})).body.warnings).toContainEqual(
    warning,
  )
  expect((await edge.call('GET', `/v1beta/agents/${agent.body.id}?veiw=short`)).body.warnings).toBeUndefined()
  const credential = { id: 'crm', type: 'bearer', token: 't', hosts: ['crm.example'] }
  const stored = await edge.call('POST', '/v1beta/credentials?veiw=short', credential)
  expect(stored.body.warnings, stored.text).toContainEqual(warning)
  await edge.call('POST', '/v1beta/interactions?veiw=short', { instruction: 'x' })
  expect(edge.engine.runs.at(-1)?.request.warnings).toMatchObject([warning])
})

test('a stream has the header', async () => {
  const { headers } = await edge.call('POST', '/v1beta/interactions:stream?pagesize=5', { instruction: 'x' })
  expect(headers['content-type']).toContain('text/event-stream')
  expect(headers[HEADER]).toBe(PAGESIZE)
})

test('encodes any name for the header, and limits the number and length of names', async () => {
  const hostile = 'a"; b,\r\nSet-Cookie: ü\ud83e'
  const query = new URLSearchParams([[hostile, '1']])
  const { headers } = await edge.call('GET', `/v1beta/agents?${query}`)
  expect(headers[HEADER]).toBe(`unknown_parameter;param="${encodeURIComponent(hostile.toWellFormed())}"`)
  expect(headers['set-cookie']).toBeUndefined()
  const many = Array.from({ length: 100 }, (_, i) => `${'x'.repeat(100)}${i}=1`).join('&')
  const bounded = String((await edge.call('GET', `/v1beta/agents?${many}`)).headers[HEADER]).split(', ')
  expect(bounded).toEqual(Array.from({ length: 20 }, () => `unknown_parameter;param="${'x'.repeat(80)}"`))
})

test('pages and files of the console and the documentation have no such header', async () => {
  for (const path of ['/console/runs?status=failed', '/docs/start.html?v=1']) {
    expect((await edge.call('GET', path)).headers[HEADER], path).toBeUndefined()
  }
})
