/**
 * Tests of credential secrets: to which hosts a credential may be sent, in which headers, and which texts are redacted.
 */
import { expect, it } from 'vitest'
import { confidential, headersOf, hostAllowed } from '../../src/domain/credential.ts'

it.each([
  [['api.example.com'], 'https://api.example.com/x', true],
  [['API.example.com'], 'https://api.EXAMPLE.com/', true],
  [['api.example.com'], 'https://api.example.com:443/', true],
  [['api.example.com'], 'https://api.example.com:8443/', false],
  [['api.example.com:8443'], 'https://api.example.com:8443/', true],
  [['api.example.com'], 'https://api.example.com.evil.test/', false],
  [['api.example.com'], 'https://evil.test/api.example.com', false],
  [['*.example.com'], 'https://a.b.example.com/', true],
  [['*.example.com'], 'https://example.com/', false],
  [['*.example.com'], 'https://evilexample.com/', false],
  [['a.test', '127.0.0.1:9000'], 'http://127.0.0.1:9000/mcp', true],
  [['127.0.0.1'], 'http://127.0.0.1:9000/mcp', false],
  [undefined, 'https://anywhere.test/', true],
])('allowed hosts %j, URL %s: allowed is %s', (hosts, url, allowed) => {
  expect(hostAllowed(hosts, new URL(url))).toBe(allowed)
})

it.each([
  [{ type: 'bearer', token: 'abc' }, { authorization: 'Bearer abc' }, ['abc']],
  [{ type: 'headers', headers: { 'X-A': 'Token abc' } }, { 'X-A': 'Token abc' }, ['Token abc', 'abc']],
  [{ type: 'basic', username: 'u', password: 'p' }, { authorization: 'Basic dTpw' }, ['p', 'dTpw']],
  [{ type: 'oauth2', refreshToken: 'r', clientSecret: 's' }, {}, ['s', 'r']],
  [{ type: 'oauth2', accessToken: 'a' }, { authorization: 'Bearer a' }, ['a']],
] as const)('%j becomes request headers, and lists the texts to redact', (secret, headers, texts) => {
  expect(headersOf(secret)).toEqual(headers)
  expect(confidential(secret)).toEqual(texts)
})
